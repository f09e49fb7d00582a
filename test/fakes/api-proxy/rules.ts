import type { Exchange } from "./exchange.ts";
import type { RequestTarget } from "./request-target.ts";

/** What the proxy does with a request instead of passing it on. Resolves once it has nothing left to do. */
export type Fault = (exchange: Exchange) => void | Promise<void>;

/** Which requests; what is left out matches all. */
export type Matcher = Partial<RequestTarget>;

export interface RuleOptions {
  /** The first of the matching requests that is hit; 1 by default. */
  nth?: number;
  /** How many are hit; 1 by default. */
  times?: number;
}

export interface Rule {
  /** How many requests were hit so far. */
  readonly hits: number;
  remove(): void;
}

interface Entry {
  matcher: Matcher;
  fault: Fault;
  nth: number;
  times: number;
  matched: number;
  hits: number;
}

/** The faults that a test has scripted. The first rule that is due takes a request; later rules do not count it. */
export class Rules {
  readonly #entries = new Set<Entry>();

  add(matcher: Matcher, fault: Fault, options: RuleOptions = {}): Rule {
    const entry: Entry = { matcher, fault, nth: 1, times: 1, ...options, matched: 0, hits: 0 };
    this.#entries.add(entry);
    return {
      get hits() {
        return entry.hits;
      },
      remove: () => void this.#entries.delete(entry),
    };
  }

  take(target: RequestTarget): Fault | undefined {
    for (const entry of this.#entries) {
      if (entry.hits >= entry.times || !matches(entry.matcher, target)) continue;
      entry.matched += 1;
      if (entry.matched < entry.nth) continue;
      entry.hits += 1;
      return entry.fault;
    }
    return undefined;
  }
}

function matches(matcher: Matcher, target: RequestTarget): boolean {
  const { verb, resource, namespace, name, subresource } = matcher;
  return (
    [target.verb, undefined].includes(verb) &&
    [target.resource, undefined].includes(resource) &&
    [target.namespace, undefined].includes(namespace) &&
    [target.name, undefined].includes(name) &&
    [target.subresource, undefined].includes(subresource)
  );
}
