import { expect, test } from "vitest";
import { instanceName } from "./instance-name.ts";
import { type HashedSpec, specHash } from "./spec-hash.ts";

const key = Buffer.from("a key of the installation");
const plain: HashedSpec = { placement: undefined, cloudInit: undefined, port: 3128, auth: undefined };

test("version v1 of the hash is what it always was: another value would replace every fleet", () => {
  expect(specHash(plain, key)).toBe("10748f4f6f051dd17ad90d6eea96c271");
  const full: HashedSpec = {
    placement: { region: "r", zone: "z", machineType: "m", image: "i" },
    cloudInit: Buffer.from("#cloud-config"),
    port: 8080,
    auth: { username: "u", password: "p" },
  };
  expect(specHash(full, key)).toBe("2bbb6b63c8fb0db630a59fc61814df71");
});

test.each<[string, Partial<HashedSpec>]>([
  ["a zone", { placement: { zone: "b" } }],
  ["a region of the same value", { placement: { region: "b" } }],
  ["cloud-init", { cloudInit: Buffer.from("x") }],
  ["a port", { port: 3129 }],
  ["credentials", { auth: { username: "u", password: "p" } }],
])("%s changes the hash", (_name, change) => {
  expect(specHash({ ...plain, ...change }, key)).not.toBe(specHash(plain, key));
});

test("an empty placement is no placement", () => {
  expect(specHash({ ...plain, placement: {} }, key)).toBe(specHash(plain, key));
});

test("the hash cannot be told without the key", () => {
  expect(specHash(plain, Buffer.from("another"))).not.toBe(specHash(plain, key));
});

test("every owner and incarnation has a name of its own that a backend takes", () => {
  const owners = ["a", "b"].flatMap((installation) =>
    ["u1", "u2"].flatMap((uid) => [1, 2].map((incarnation) => ({ installation, uid, incarnation }))),
  );
  const names = owners.map(instanceName);
  expect(new Set(names).size).toBe(owners.length);
  for (const name of names) expect(name).toMatch(/^proxy-[a-z2-7]{16}$/);
});
