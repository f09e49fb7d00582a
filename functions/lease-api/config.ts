import { z } from "zod";
import { flag, integer } from "#shared/process/environment.ts";

/** Settings of the lease API. */
export const leaseApiSettings = z
  .object({
    LEASE_API_HOST: z.string().default("0.0.0.0").describe("Address that the lease API listens on."),
    LEASE_API_PORT: integer(0, 65_535).default(8090).describe("Port of the lease API; 0 picks a free one."),
    LEASE_TOKENS_FILE: z
      .string()
      .optional()
      .describe("The file with the API tokens. Required unless LEASE_API_INSECURE_NO_AUTH is true."),
    LEASE_API_INSECURE_NO_AUTH: flag
      .default(false)
      .describe("Serves everybody as an administrator, without tokens. For trying things out only."),
  })
  .refine((settings) => settings.LEASE_TOKENS_FILE !== undefined || settings.LEASE_API_INSECURE_NO_AUTH, {
    path: ["LEASE_TOKENS_FILE"],
    error:
      "is required and not set: name the file with the API tokens, or set LEASE_API_INSECURE_NO_AUTH=true to serve everybody without",
    // Also while another setting is wrong: nobody is to be told of them one by one.
    when: () => true,
  });
export type LeaseApiSettings = z.infer<typeof leaseApiSettings>;
