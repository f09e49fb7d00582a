import { keys } from "#shared/model/keys.ts";

/** What precedes the member in the key of a registry record. */
export const recordPrefix = keys.record(":0").slice(0, -":0".length);

/** ARGV[1..3] of every script that follows settle.lua: it finds members while it runs, and makes their keys of these. */
export const prefixes = [recordPrefix, keys.leasesOfMember(":0").slice(0, -":0".length), keys.free("")] as const;
