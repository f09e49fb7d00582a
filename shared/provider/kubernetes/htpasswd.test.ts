import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { htpasswd } from "./htpasswd.ts";

/** Asks the real helper of Squid, whose lines are URL-encoded `user password`. */
function accepts(file: string, username: string, password: string): boolean {
  const dir = mkdtempSync(path.join(tmpdir(), "htpasswd-"));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  writeFileSync(path.join(dir, "htpasswd"), file);
  const input = `${encodeURIComponent(username)} ${encodeURIComponent(password)}\n`;
  const answer = execFileSync("/usr/lib/squid/basic_ncsa_auth", [path.join(dir, "htpasswd")], { input });
  return answer.toString().startsWith("OK");
}

test.each([
  ["crawler", "secret"],
  ["Crawl Er@site", 'a much longer passphrase than eight letters: with % and \\ and "quotes"'],
  ["ümläut", "pässwörd🔒"],
  ["u", "x".repeat(200)],
])("Squid's helper accepts %s with its password and no other", (username, password) => {
  const file = htpasswd("proxy-abc", { username, password });
  expect(accepts(file, username, password)).toBe(true);
  expect(accepts(file, username, `${password}!`)).toBe(false);
  expect(accepts(file, `${username}x`, password)).toBe(false);
});

test("the file is the same every time, and different for another instance", () => {
  const user = { username: "u", password: "p" };
  expect(htpasswd("proxy-a", user)).toBe(htpasswd("proxy-a", user));
  expect(htpasswd("proxy-a", user)).not.toBe(htpasswd("proxy-b", user));
});

test.each([
  ["", "p"],
  ["a:b", "p"],
  ["#a", "p"],
  [" a", "p"],
  ["a\nroot", "p"],
  ["a", ""],
  ["a", "topsecret\n"],
])("%j with %j is refused without being repeated", (username, password) => {
  expect(() => htpasswd("proxy-a", { username, password })).toThrow(
    expect.objectContaining({
      class: "Permanent",
      code: "InvalidCredentials",
      message: expect.not.stringContaining("topsecret"),
    }),
  );
});
