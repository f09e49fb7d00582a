/** The part of a pino logger that this folder uses. No field ever holds a payload. */
export interface JobLog {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}
