import { setTimeout as sleep } from "node:timers/promises";
import { Agent, ProxyAgent, request } from "undici";
import { z } from "zod";
import { toFailure } from "#shared/errors/failure.ts";

const servingTimeoutMs = 60_000;
const pollMs = 250;

/** Waits until the product says that it is ready. Throws with what it still waits for. */
export async function waitUntilServing(readyUrl: string, signal: AbortSignal): Promise<void> {
  let said = "nothing yet";
  for (const deadline = Date.now() + servingTimeoutMs; Date.now() < deadline; ) {
    try {
      const answer = await request(readyUrl, { signal });
      said = (await answer.body.text()).trim();
      if (answer.statusCode === 200) return;
    } catch (error) {
      if (signal.aborted) throw error;
      said = toFailure(error).message;
    }
    await sleep(pollMs, undefined, { signal });
  }
  throw new Error(`Egress Proxies is not ready: ${said}. Its log says more.`);
}

const lease = z.object({
  id: z.string(),
  token: z.string(),
  expiresAt: z.string(),
  proxy: z.object({ namespace: z.string(), name: z.string(), host: z.string(), port: z.number(), url: z.string() }),
});
export type Lease = z.infer<typeof lease>;

/** Takes a lease as a crawler would. Throws with the API's own words. */
export async function takeLease(api: { url: string; token: string }, signal: AbortSignal): Promise<Lease> {
  const headers = { authorization: `Bearer ${api.token}`, "content-type": "application/json" };
  const body = JSON.stringify({ ttlSeconds: 60, owner: "first-look" });
  const answer = await request(`${api.url}/v1/leases`, { method: "POST", headers, body, signal });
  const document = await answer.body.json();
  if (answer.statusCode !== 201)
    throw new Error(`the lease API answered ${answer.statusCode}: ${JSON.stringify(document)}`);
  return lease.parse(document);
}

export async function releaseLease(
  api: { url: string; token: string },
  { id, token }: Lease,
  signal: AbortSignal,
): Promise<void> {
  const headers = { authorization: `Bearer ${api.token}`, "lease-token": token };
  const answer = await request(`${api.url}/v1/leases/${id}`, { method: "DELETE", headers, signal });
  await answer.body.dump();
  if (answer.statusCode !== 204) throw new Error(`the lease API answered ${answer.statusCode} to a release`);
}

const page = z.object({ address: z.string() });

/** Fetches a page of the echo site, through a proxy or straight. Returns the address that the site saw. */
export async function addressSeenBy(
  site: { url: string; authority: string; proxyUrl?: string },
  signal: AbortSignal,
): Promise<string> {
  const { url, authority: ca, proxyUrl } = site;
  const dispatcher =
    proxyUrl === undefined ? new Agent({ connect: { ca } }) : new ProxyAgent({ uri: proxyUrl, requestTls: { ca } });
  try {
    const answer = await request(url, { dispatcher, signal });
    return page.parse(await answer.body.json()).address;
  } finally {
    await dispatcher.destroy();
  }
}
