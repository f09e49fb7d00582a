import { expect, test } from "vitest";
import { Failure } from "#shared/errors/failure.ts";
import { makeProxy } from "#test/fixtures/proxy.ts";
import { readSecretValues } from "./secret-values.ts";

const call = { signal: new AbortController().signal };
const withLogin = makeProxy({ spec: { auth: { secretRef: { name: "login" } } } });

/** Secrets of namespace `crawl`, by name. */
function holding(secrets: Record<string, Record<string, string>>) {
  return {
    read: (namespace: string, name: string) => {
      const found = namespace === "crawl" ? secrets[name] : undefined;
      const data = Object.entries(found ?? {}).map(([key, value]) => [key, Buffer.from(value)] as const);
      return Promise.resolve(found && { data: Object.fromEntries(data), resourceVersion: "1" });
    },
  };
}

async function missing(...args: Parameters<typeof readSecretValues>): Promise<Failure> {
  const values = await readSecretValues(...args);
  if ("failure" in values) return values.failure;
  throw new Error("nothing is missing");
}

test("a Proxy that names no Secret reads none", async () => {
  const secrets = { read: () => Promise.reject(new Error("no Secret was to be read")) };
  expect(await readSecretValues(makeProxy(), secrets, call)).toEqual({ auth: undefined, cloudInit: undefined });
});

test("the login comes from the Secret in the Proxy's own namespace", async () => {
  const secrets = holding({ login: { username: "crawler", password: "pass word" } });
  const { auth } = { auth: undefined, ...(await readSecretValues(withLogin, secrets, call)) };
  expect(auth).toEqual({ username: "crawler", password: "pass word" });
});

test("user-data comes byte for byte, inline or from a Secret", async () => {
  const inline = makeProxy({ spec: { cloudInit: { inline: "#cloud-config\n" } } });
  const referred = makeProxy({ spec: { cloudInit: { secretKeyRef: { name: "seed", key: "user-data" } } } });
  const secrets = holding({ seed: { "user-data": "#cloud-config\n" } });
  const expected = Buffer.from("#cloud-config\n");
  expect(await readSecretValues(inline, secrets, call)).toMatchObject({ cloudInit: expected });
  expect(await readSecretValues(referred, secrets, call)).toMatchObject({ cloudInit: expected });
});

test("a missing Secret and a missing or empty key are named, and no value is", async () => {
  const { code, message } = await missing(withLogin, holding({}), call);
  expect([code, message]).toEqual(["SecretMissing", "Secret crawl/login does not exist."]);
  for (const login of [{ username: "crawler" }, { username: "crawler", password: "" }]) {
    const failure = await missing(withLogin, holding({ login }), call);
    expect(failure.message).toBe('Secret crawl/login has no key "password", or it is empty.');
  }
});

test("a read that failed says nothing of the Secret: it is thrown", async () => {
  const failure = new Failure({ class: "Transient", code: "Unavailable", message: "the API server is away" });
  const secrets = { read: () => Promise.reject(failure) };
  await expect(readSecretValues(withLogin, secrets, call)).rejects.toBe(failure);
});
