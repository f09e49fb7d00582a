import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestLeaseApi } from "#test/lease-api.ts";
import { startRedis, type TestRedis } from "#test/redis.ts";

let server: TestRedis;
let api: Awaited<ReturnType<typeof startTestLeaseApi>>;
const token = "secret";

beforeAll(async () => {
  server = await startRedis();
  api = await startTestLeaseApi({ redisUrl: server.url, tokens: [{ name: "a", secret: token, scopes: ["admin"] }] });
});

afterAll(async () => {
  await api.stop();
  await server.stop();
});

const type = (code: string): string => `urn:egress-proxies:problem:${code}`;

/** Sends bytes as they are and returns all that comes back. */
async function raw(bytes: string | Buffer): Promise<string> {
  const socket = connect(api.port, "127.0.0.1");
  socket.on("error", () => undefined); // the server may hang up while we still write
  let answer = "";
  socket.on("data", (data) => (answer += data.toString()));
  socket.write(bytes);
  await once(socket, "close");
  return answer;
}

test.each([
  ["ttlSeconds", { ttlSeconds: 9 }],
  ["ttlSeconds", { ttlSeconds: 3601 }],
  ["ttlSeconds", { ttlSeconds: 10.5 }],
  ["ttlSeconds", { ttlSeconds: "60" }],
  ["target", { target: "Shop.example" }],
  ["target", { target: "https://shop.example" }],
  ["target", { target: "" }],
  ["target", { target: `${"a".repeat(64)}.example` }],
  ["target", { target: `${"a.".repeat(126)}aa` }],
  ["owner", { owner: "" }],
  ["owner", { owner: "line\nbreak" }],
  ["owner", { owner: "a".repeat(129) }],
  ["selector.namespace", { selector: { namespace: "Upper" } }],
  ["selector.labels.tier", { selector: { labels: { tier: 1 } } }],
  [
    "selector.labels",
    { selector: { labels: Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`k${i}`, "v"])) } },
  ],
  ["selector.region", { selector: { region: "\ud800" } }],
  ["selector.zone", { selector: { zone: "a\udc00" } }],
  ["selector.labels.tier", { selector: { labels: { tier: "\ud800" } } }],
  ["selector.labels.\ufffd", { selector: { labels: { "\ud800": "a" } } }],
  ["\ufffd", { "\udfff": 1 }],
  ["selector.colour", { selector: { colour: "red" } }],
  ["waitSecs", { waitSecs: 1 }],
  ["the body", [1]],
])("a bad %s is refused with its name: %j", async (field, body) => {
  const answer = await api.call("POST", "/v1/leases", { token, body });
  expect(answer.status).toBe(400);
  expect(answer.headers.get("content-type")).toMatch("application/problem+json");
  expect(answer.json).toMatchObject({ type: type("invalid-request"), errors: [{ field }] });
});

test.each([
  ["/v1/leases?owners=x", "owners"],
  ["/v1/leases?proxy=p1", "proxy"],
  ["/v1/leases?owner=a&owner=b", "owner"],
  ["/v1/leases?cursor=%20", "cursor"],
  ["/v1/leases?cursor=", "cursor"],
  ["/v1/leases?cursor=abc", "cursor"],
  ["/v1/leases?cursor=-1", "cursor"],
  ["/v1/leases?cursor=18446744073709551616", "cursor"],
  ["/v1/leases?cursor=99999999999999999999", "cursor"],
  [`/v1/leases?cursor=${"9".repeat(1100)}`, "cursor"],
  ["/v1/proxies?cursor=abc", "cursor"],
  ["/v1/proxies?cursor=17", "cursor"],
  ["/v1/proxies?cursor=_", "cursor"],
  ["/v1/proxies?state=happy", "state"],
])("a bad query is refused with the name of the field: %s", async (url, field) => {
  const answer = await api.call("GET", url, { token });
  expect(answer).toMatchObject({ status: 400, json: { type: type("invalid-request"), errors: [{ field }] } });
});

test.each([
  ["not JSON", "{", 400, "malformed-request"],
  ["a blank JSON body", " ", 400, "malformed-request"],
  ["a prototype", '{"__proto__": {"a": 1}}', 400, "malformed-request"],
  ["a constructor", '{"constructor": {"prototype": {}}}', 400, "malformed-request"],
  ["deep JSON", "[".repeat(5_000), 400, "malformed-request"],
  ["deep, closed JSON", "[".repeat(5_000) + "]".repeat(5_000), 400, "invalid-request"],
  ["a huge body", JSON.stringify({ owner: "a".repeat(20_000) }), 413, "body-too-large"],
])("%s is refused", async (_, body, status, code) => {
  const answer = await api.call("POST", "/v1/leases", { token, body });
  expect(answer).toMatchObject({ status, json: { type: type(code) } });
});

test("an empty body asks for any proxy, with a type or without", async () => {
  const head = `POST /v1/leases HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${token}\r\n`;
  for (const contentType of ["", "Content-Type: application/json\r\n"])
    expect(await raw(`${head}${contentType}Content-Length: 0\r\n\r\n`)).toContain(type("nothing-free"));
});

test("the largest cursor that Redis takes is taken", async () => {
  expect(await api.call("GET", "/v1/leases?cursor=18446744073709551615", { token })).toMatchObject({ status: 200 });
});

test("bad UTF-8 is refused", async () => {
  const body = Buffer.concat([Buffer.from('{"owner":"'), Buffer.from([0xff, 0xfe]), Buffer.from('"}')]);
  const head = `POST /v1/leases HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${token}\r\n`;
  const answer = await raw(
    Buffer.concat([
      Buffer.from(`${head}Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`),
      body,
    ]),
  );
  expect(answer).toMatch(/^HTTP\/1\.1 400 /);
  expect(answer).toContain("not UTF-8");
});

test.each(["text/plain", "application/x-www-form-urlencoded", "application/xml", "nonsense"])(
  "a body of type %s is refused",
  async (contentType) => {
    const headers = { "content-type": contentType };
    const answer = await api.call("POST", "/v1/leases", { token, body: "{}", headers });
    expect(answer).toMatchObject({ status: 415, json: { type: type("unsupported-media-type") } });
  },
);

test.each([
  ["GET", "/nowhere", 404, "route-not-found"],
  ["PUT", "/v1/leases", 404, "route-not-found"],
  ["GET", "/v1/leases/%zz", 400, "malformed-request"],
  ["GET", `/v1/leases/${"a".repeat(200)}`, 400, "invalid-request"],
  ["GET", `/v1/leases/${"a".repeat(400)}`, 414, "uri-too-long"],
])("%s %s is answered with a problem", async (method, url, status, code) => {
  const answer = await api.call(method, url, { token });
  expect(answer).toMatchObject({ status, json: { type: type(code), status } });
});

test.each([
  ["what is not HTTP", "nonsense\r\n\r\n", 400, "malformed-request"],
  ["a flood of headers", `GET / HTTP/1.1\r\nHost: x\r\nX-A: ${"a".repeat(20_000)}\r\n\r\n`, 431, "headers-too-large"],
  [
    "a body of two lengths",
    "POST /v1/leases HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    400,
    "malformed-request",
  ],
])("%s is answered with a problem, and the connection ends", async (_, bytes, status, code) => {
  const answer = await raw(bytes);
  expect(answer).toContain(`HTTP/1.1 ${status} `);
  expect(answer).toContain("application/problem+json");
  expect(answer).toContain(type(code));
});

test("nothing of all this is a mistake of ours", () => {
  expect(api.log.join("")).not.toContain('"error"');
});
