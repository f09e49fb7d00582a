import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { freePort } from "../free-port.ts";
import { chooseEchoHost } from "./echo-host.ts";

async function scene() {
  const dir = await mkdtemp(path.join(tmpdir(), "echo-host-"));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  const ports = [await freePort("127.0.0.9"), await freePort("127.0.0.9")];
  const choose = (name = "echo.address") => chooseEchoHost({ file: path.join(dir, name), dir, ports });
  return { dir, ports, choose };
}

async function occupy(host: string, port = 0): Promise<Server> {
  const server = createServer().listen(port, host);
  onTestFinished(() => {
    server.close();
  });
  await once(server, "listening");
  return server;
}

test("the first address is taken while its ports are free, and the next one by another folder", async () => {
  const { ports, choose } = await scene();
  expect(await choose()).toBe("127.0.0.9");
  await occupy("127.0.0.9", ports[1]);
  expect(await choose("another")).toBe("127.0.0.10");
});

test("a folder keeps its address, also when an earlier one has become free", async () => {
  const { ports, choose } = await scene();
  const other = await occupy("127.0.0.9", ports[0]);
  expect(await choose()).toBe("127.0.0.10");
  other.close();
  await once(other, "close");
  expect(await choose()).toBe("127.0.0.10");
});

test("a kept address that is in use ends the start with the port and both remedies", async () => {
  const { dir, ports, choose } = await scene();
  await choose();
  await occupy("127.0.0.9", ports[1]);
  await expect(choose()).rejects.toThrow(
    `Port ${ports[1]} of 127.0.0.9, which the echo site of this folder had before, is in use: stop what uses it (another npm start?), or remove ${dir}`,
  );
});

test("a server on all addresses is named as such", async () => {
  const { ports, choose } = await scene();
  await occupy("0.0.0.0", ports[0]);
  await expect(choose()).rejects.toThrow("something listens on all addresses");
});
