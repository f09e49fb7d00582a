import { type Logger, type LoggerOptions, pino } from "pino";
import pretty from "pino-pretty";

export type { Logger } from "pino";

/** A level for everything and levels for named components, e.g. `info,provider=debug`. */
export interface LogLevels {
  level: string;
  components: Readonly<Record<string, string>>;
}

const levelNames = ["fatal", "error", "warn", "info", "debug", "trace", "silent"];

/** Parses LOG_LEVEL. Throws on an unknown level, naming those there are. */
export function parseLogLevels(text: string): LogLevels {
  const levels: { level: string; components: Record<string, string> } = { level: "info", components: {} };
  for (const part of text.split(",")) {
    const [left = "", right] = part.split("=").map((each) => each.trim());
    const level = right ?? left;
    if (!levelNames.includes(level))
      throw new Error(`unknown log level "${level}": use one of ${levelNames.join(", ")}`);
    if (right === undefined) levels.level = level;
    else levels.components[left] = level;
  }
  return levels;
}

export interface LogOptions {
  levels: LogLevels;
  /** Lines for people instead of JSON. */
  pretty: boolean;
  /** Where lines go, for tests; standard output otherwise. */
  destination?: { write(line: string): void };
}

/** The process's logger: JSON lines on standard output, errors with their cause. */
export function createLogger({ levels, pretty: forPeople, destination }: LogOptions): Logger {
  const options: LoggerOptions = {
    level: levels.level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    serializers: { err: withoutCommand },
  };
  if (destination !== undefined) return pino(options, destination);
  return forPeople ? pino(options, pretty({ sync: true, ignore: "pid,hostname" })) : pino(options);
}

/** An error of ioredis carries the command that failed, arguments and all: a registry record has credentials in it. */
function withoutCommand(error: Error): object {
  const { command: _, ...shown } = pino.stdSerializers.err(error);
  return shown;
}

/** The logger of one component, at the level that was set for it. */
export function componentLogger(root: Logger, component: string, levels: LogLevels): Logger {
  return root.child({ component }, { level: levels.components[component] ?? levels.level });
}
