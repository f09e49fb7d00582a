import { readFile } from "node:fs/promises";
import path from "node:path";
import { request } from "undici";
import { z } from "zod";

const listed = z.object({
  proxies: z.array(z.object({ name: z.string(), state: z.string(), incarnation: z.number() })),
});

/** What a crawler sees of an installation. */
export class LeaseClient {
  readonly #dir: string;
  readonly #port: number;

  constructor(options: { dir: string; port: number }) {
    this.#dir = options.dir;
    this.#port = options.port;
  }

  /** The state of every instance in the registry by name, e.g. `free`; empty while the API does not answer. */
  async states(): Promise<Record<string, string>> {
    const token = (await readFile(path.join(this.#dir, "lease.token"), "utf8")).trim();
    const url = `http://127.0.0.1:${this.#port}/v1/proxies`;
    try {
      const answer = await request(url, { headers: { authorization: `Bearer ${token}` } });
      const { proxies } = listed.parse(await answer.body.json());
      return Object.fromEntries(proxies.map(({ name, state }) => [name, state]));
    } catch {
      return {}; // down for a moment: callers poll
    }
  }
}
