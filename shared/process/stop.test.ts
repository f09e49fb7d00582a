import { expect, test } from "vitest";
import { createLogger, type Logger } from "#shared/telemetry/logger.ts";
import { RunningParts } from "./stop.ts";

function collect(): { log: Logger; lines: string[] } {
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  return { log: createLogger({ levels: { level: "info", components: {} }, pretty: false, destination }), lines };
}

test("parts stop in the reverse of the order in which they were added", async () => {
  const stopped: string[] = [];
  const parts = new RunningParts(collect().log);
  for (const name of ["connection", "consumer"]) parts.add(name, () => void stopped.push(name));
  await parts.stopAll(1000);
  expect(stopped).toEqual(["consumer", "connection"]);
});

test("a part that fails or hangs is named in the log and holds back no other", async () => {
  const { log, lines } = collect();
  const stopped: string[] = [];
  const parts = new RunningParts(log);
  parts.add("last", () => void stopped.push("last"));
  parts.add("hangs", () => new Promise<void>(() => undefined));
  parts.add("fails", () => Promise.reject(new Error("no")));
  await parts.stopAll(20);
  expect(stopped).toEqual(["last"]);
  expect(lines.map((line) => /"part":"(\w+)"/.exec(line)?.[1])).toEqual(["fails", "hangs"]);
});
