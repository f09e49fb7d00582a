import path from "node:path";
import { expect, test } from "vitest";
import { parseOptions } from "./options.ts";

test("without options everything has a default, and the folder is absolute", () => {
  const dir = path.resolve(".local");
  expect(parseOptions([], {})).toEqual({ once: false, help: false, dir, leasePort: 8090, cluster: undefined });
});

test("a kubeconfig names a cluster to run on, in a namespace that can be chosen", () => {
  const kubeconfigFile = path.resolve("some/file");
  const usual = { kubeconfigFile, namespace: "egress-proxies", withAgent: false };
  expect(parseOptions(["--kubeconfig", "some/file"], {}).cluster).toEqual(usual);
  const chosen = parseOptions(["--kubeconfig", "some/file", "--with-agent", "--namespace", "mine"], {}).cluster;
  expect(chosen).toEqual({ kubeconfigFile, namespace: "mine", withAgent: true });
});

test.each([
  [["--lease-port", "abc"], '--lease-port: expected a port from 1 to 65535, got "abc"'],
  [["--lease-port", "0x50"], '--lease-port: expected a port from 1 to 65535, got "0x50"'],
  [["--lease-port", "70000"], '--lease-port: expected a port from 1 to 65535, got "70000"'],
  [["--lease-port", ""], '--lease-port: expected a port from 1 to 65535, got ""'],
  [["--dir", ""], "--dir: expected the name of a folder, got nothing"],
  [["--dir", import.meta.filename], `--dir: expected a folder, and ${import.meta.filename} is none`],
  [["--dir", `${import.meta.filename}/below`], `--dir: expected a folder, and ${import.meta.filename} is none`],
  [["--with-agent"], "--with-agent: only with --kubeconfig"],
  [["--namespace", "mine"], "--namespace: only with --kubeconfig"],
  [["--kubeconfig", ""], "--kubeconfig: expected the name of a file, got nothing"],
  [["--kubeconfig", "f", "--namespace", "Mine"], "--namespace: expected a namespace's name of at most 50 characters"],
  [["--kubeconfig", "f", "--namespace", "a".repeat(51)], "--namespace: expected a namespace's name"],
  [["--dir"], "See npm start -- --help."],
  [["--twice"], "See npm start -- --help."],
  [["now"], "See npm start -- --help."],
])("%j is refused with its name and what is expected", (args, message) => {
  expect(() => parseOptions(args, {})).toThrow(message);
});

test.each([
  ["npm_config_once", "once"],
  ["npm_config_dir", "dir"],
  ["npm_config_lease_port", "lease-port"],
  ["npm_config_kubeconfig", "kubeconfig"],
  ["npm_config_with_agent", "with-agent"],
])("an option that npm kept for itself (%s) is refused with the remedy", (variable, name) => {
  expect(() => parseOptions([], { [variable]: "true" })).toThrow(`npm start -- --${name}`);
  expect(parseOptions(["--once"], { [variable]: "true" }).once).toBe(true);
});
