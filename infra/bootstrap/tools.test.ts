import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Foreground } from "./foreground.mjs";
import { ScratchCheckout } from "./scratch-checkout.ts";
import { removeLeftPolicy } from "./service-policy.mjs";
import { installTools, searchPath } from "./tools.mjs";

const foreground = new Foreground();
const said: string[] = [];
let machine: ScratchCheckout;

beforeEach(async () => {
  machine = await ScratchCheckout.make();
  said.length = 0;
  await machine.write("lists/deb_main_Packages.lz4", "");
});
afterEach(() => machine.remove());

const inside = (name: string): string => path.join(machine.root, name);
const system = () => ({
  programs: [inside("sbin")],
  servicePolicy: inside("policy-rc.d"),
  packageLists: inside("lists"),
  lock: inside("lock"),
  systemd: inside("systemd"),
});

// Only stand-ins are on the PATH: what the real machine has must not count as present.
const install = (isRoot = true): Promise<void> =>
  installTools({
    tools: ["redis-server", "squid"],
    isRoot,
    foreground,
    env: { PATH: inside("bin") },
    say: (line: string) => void said.push(line),
    system: system(),
  });

/** An apt-get that notes what the service policy says and puts what it is asked for where programs are. */
async function workingApt(before = ""): Promise<void> {
  await machine.program(
    "apt-get",
    `PATH=/usr/bin:/bin; cd ${machine.root}; ${before}
    case "$*" in *" install "*) ;; *) exit 0;; esac
    sh policy-rc.d; echo "policy $?" >> calls
    mkdir -p sbin; for tool in redis-server squid; do printf '#!/bin/sh' > sbin/$tool; chmod +x sbin/$tool; done`,
  );
}

const aptInstall = "apt-get -o DPkg::Lock::Timeout=300 install --yes --no-install-recommends";
const aptUpdate = "apt-get -o DPkg::Lock::Timeout=300 update";

test("missing tools are announced, installed in one go while services may not start, and not looked for again", async () => {
  await workingApt();
  await install();
  expect(said).toEqual([
    expect.stringMatching(/^Installing redis-server and squid with apt.*services are not started/),
  ]);
  expect(await machine.calls()).toEqual([`${aptInstall} redis-server squid`, "policy 101"]);
  expect(existsSync(inside("policy-rc.d"))).toBe(false);
  await install();
  expect(said).toHaveLength(1);
});

test("only what is missing is installed", async () => {
  await workingApt();
  await machine.program("squid", "");
  await install();
  expect((await machine.calls())[0]).toBe(`${aptInstall} redis-server`);
});

test("package lists are fetched first where there are none", async () => {
  await workingApt();
  await machine.write("empty/auxfiles", "");
  await installTools({
    tools: ["squid"],
    isRoot: true,
    foreground,
    env: { PATH: inside("bin") },
    say: () => undefined,
    system: { ...system(), packageLists: inside("empty") },
  });
  expect((await machine.calls()).slice(0, 2)).toEqual([aptUpdate, `${aptInstall} squid`]);
});

test("package lists are fetched after a failure, and the installation is tried once more", async () => {
  await workingApt(`[ -e failed ] || { touch failed; exit 100; };`);
  await install();
  expect(await machine.calls()).toEqual([
    `${aptInstall} redis-server squid`,
    aptUpdate,
    `${aptInstall} redis-server squid`,
    "policy 101",
  ]);
});

test("a failing apt ends with its last lines and the remedy, and the machine's own policy is back", async () => {
  await machine.write("policy-rc.d", "the machine's own");
  await machine.program("apt-get", "echo 'E: no space left'; exit 100");
  await expect(install()).rejects.toThrow(/no space left[^]*not installed[^]*sudo apt-get install/);
  expect(await readFile(inside("policy-rc.d"), "utf8")).toBe("the machine's own");
});

test("without root nothing is tried, and the message names the tools and the remedy", async () => {
  await workingApt();
  await expect(install(false)).rejects.toThrow(
    /redis-server and squid are needed.*root[^]*sudo apt-get install --no-install-recommends redis-server squid/,
  );
  expect(await machine.calls()).toEqual([]);
});

test("without apt the message names the packages of other systems", async () => {
  await expect(install()).rejects.toThrow(/dnf install redis squid[^]*brew install redis squid/);
});

test("under systemd the services are kept from starting at the next boot", async () => {
  await workingApt();
  await machine.write("systemd/.keep", "");
  await machine.program("systemctl", "");
  await install();
  expect(await machine.calls()).toContain("systemctl disable redis-server.service squid.service");
});

test("a policy that a killed run left behind is undone", async () => {
  await machine.write("policy-rc.d.before-egress-proxies", "the machine's own");
  await machine.write("policy-rc.d", "ours");
  await removeLeftPolicy(system(), foreground);
  expect(await readFile(inside("policy-rc.d"), "utf8")).toBe("the machine's own");
  await removeLeftPolicy(system(), foreground);
  expect(await readFile(inside("policy-rc.d"), "utf8")).toBe("the machine's own");
});

test("a search path names each folder once", () => {
  expect(searchPath(["/a"], "/b:/a::/c", ["/c", "/d"])).toBe("/a:/b:/c:/d");
});
