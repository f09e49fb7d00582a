import type { Answer } from "./exchange.ts";
import type { Fault } from "./rules.ts";

/** The connection ends before the API server sees the request. */
export const dropRequest: Fault = (exchange) => exchange.drop();

/** The API server acts on the request; its answer is lost. */
export const loseAnswer: Fault = async (exchange) => {
  await exchange.forward();
  exchange.drop();
};

/** The API server acts on the request; the connection ends in the middle of its answer. */
export const dropMidAnswer: Fault = async (exchange) => {
  await exchange.half(await exchange.forward());
  exchange.drop();
};

/** Takes the request and never says a word. The API server does not see it. */
export const blackHole: Fault = (exchange) => exchange.closed();

/** The API server acts on the request; nothing of its answer comes before `release`. */
export function lateAnswer(release: Promise<void>): Fault {
  return async (exchange) => {
    const answer = await exchange.forward();
    await Promise.race([release, exchange.closed()]);
    exchange.answer(answer);
  };
}

/** Half of the answer comes at once, the other half after `release`. */
export function slowBody(release: Promise<void>): Fault {
  return async (exchange) => {
    const rest = await exchange.half(await exchange.forward());
    await Promise.race([release, exchange.closed()]);
    await exchange.write(rest);
  };
}

/** A refusal as the API server words it; it does not see the request. */
export function refuse(status: number, reason: string, options: { retryAfterSeconds?: number } = {}): Fault {
  return (exchange) => exchange.answer(refusal(status, reason, options));
}

/** 410: the version or continue token is from before the last compaction of etcd. */
export const expired = refuse(410, "Expired");

export const conflict = refuse(409, "Conflict");

export const tooManyRequests = (retryAfterSeconds: number): Fault =>
  refuse(429, "TooManyRequests", { retryAfterSeconds });

/** The API server acts on the request, and the answer is no JSON. */
export const garbage: Fault = async (exchange) => {
  exchange.answer({ ...(await exchange.forward()), body: Buffer.from("<html>at your service</html>") });
};

/** The API server acts on the request, and its answer ends, properly, in the middle of the JSON. */
export const truncated: Fault = async (exchange) => {
  const answer = await exchange.forward();
  exchange.answer({ ...answer, body: answer.body.subarray(0, answer.body.length / 2) });
};

/** Of every path the first answer, again and again: a server or cache that has stopped learning. */
export function frozen(): Fault {
  const answers = new Map<string, Answer>();
  return async (exchange) => {
    const key = `${exchange.request.headers["accept"]} ${exchange.request.url.pathname}${exchange.request.url.search}`;
    const answer = answers.get(key) ?? (await exchange.forward());
    answers.set(key, answer);
    exchange.answer(answer);
  };
}

export function refusal(code: number, reason: string, options: { retryAfterSeconds?: number } = {}): Answer {
  const { retryAfterSeconds } = options;
  const status = { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", reason, code };
  const message = `${reason}, says the fault-injecting proxy`;
  return {
    status: code,
    headers: {
      "content-type": "application/json",
      ...(retryAfterSeconds === undefined ? {} : { "retry-after": String(retryAfterSeconds) }),
    },
    body: Buffer.from(JSON.stringify({ ...status, message })),
  };
}
