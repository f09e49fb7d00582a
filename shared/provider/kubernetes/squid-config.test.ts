import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { kubernetesSettings } from "./settings.ts";
import { squidConfig } from "./squid-config.ts";

function config(settings: object, htpasswdFile: string | undefined = "/etc/egress-proxy/htpasswd"): string {
  return squidConfig({ port: 3128, htpasswdFile, settings: kubernetesSettings.parse(settings) });
}

/** What Squid has to say about a config, but for its progress. Throws when it refuses it. */
function complaints(text: string): string[] {
  const dir = mkdtempSync(path.join(tmpdir(), "squid-parse-"));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  const file = path.join(dir, "squid.conf");
  writeFileSync(file, text);
  // Parse errors go to stderr, together with the progress.
  const said = execFileSync("/bin/sh", ["-c", `/usr/sbin/squid -k parse -f ${file} 2>&1`], { encoding: "utf8" });
  return said
    .split("\n")
    .filter((line) => /ERROR|WARNING|FATAL|NOTICE|Bungled/.test(line))
    .filter((line) => !line.includes("HTTP requires the use of Via"));
}

test("the config of a proxy with the default settings", () => {
  expect(config({})).toMatchSnapshot();
});

test("the config of a proxy with openings and without credentials", () => {
  const settings = {
    allowDestinations: ["127.0.0.9/32:8443"],
    connectPorts: [443, 8443],
    allowSources: ["10.0.0.0/8"],
  };
  expect(config(settings, undefined).split("acl has_cache_control")[1]).toMatchSnapshot();
});

test.each([
  ["the defaults", {}],
  [
    "openings of both families",
    { allowDestinations: ["10.1.0.0/16:80", "10.0.0.0/8:80", "[fd00::]/8:8443", "0.0.0.0/0:81"] },
  ],
  [
    "sources that overlap or cover everything",
    { allowSources: ["10.0.0.0/8", "10.1.0.0/16", "0.0.0.0/0", "2000::/3"] },
  ],
])("Squid accepts %s without a complaint", (_, settings) => {
  expect(complaints(config(settings))).toEqual([]);
  expect(complaints(config(settings, undefined))).toEqual([]);
});

test("the check above sees a directive that Squid does not know", () => {
  expect(() => expect(complaints(`${config({})}\nno_such_directive on\n`)).toEqual([])).toThrow();
});
