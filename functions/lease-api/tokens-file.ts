import { readFile } from "node:fs/promises";
import { setTimeout as wait } from "node:timers/promises";
import { type ApiToken, parseTokens } from "./tokens.ts";

export interface TokensFileDeps {
  path: string;
  /** How often the content is looked at. Mounted files are symlinks that are swapped, so events would miss changes. */
  pollMs: number;
  onReload: (tokens: readonly ApiToken[]) => void;
  /** Called once for each bad content. The tokens of the last good one stay in force. */
  onBad: (error: Error) => void;
}

/** The tokens file, followed as it changes. */
export class TokensFile {
  readonly #deps: TokensFileDeps;
  readonly #stop = new AbortController();
  #text: string;
  #tokens: readonly ApiToken[];
  #complaint: string | undefined;
  #polling: Promise<void> | undefined;

  private constructor(deps: TokensFileDeps, text: string, tokens: readonly ApiToken[]) {
    this.#deps = deps;
    this.#text = text;
    this.#tokens = tokens;
  }

  /** Reads the file and follows it. Throws an Error naming the path when it cannot be read or is bad. */
  static async open(deps: TokensFileDeps): Promise<TokensFile> {
    const text = await readFile(deps.path, "utf8").catch((error: unknown) => {
      throw new Error(`LEASE_TOKENS_FILE ${deps.path} cannot be read`, { cause: error });
    });
    const file = new TokensFile(deps, text, parseFile(deps.path, text));
    file.#polling = file.#poll();
    return file;
  }

  get tokens(): readonly ApiToken[] {
    return this.#tokens;
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#polling;
  }

  async #poll(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      await wait(this.#deps.pollMs, undefined, { signal, ref: false }).catch(() => "stopped");
      if (!signal.aborted) await this.#look();
    }
  }

  async #look(): Promise<void> {
    try {
      const text = await readFile(this.#deps.path, "utf8");
      if (text === this.#text && this.#complaint === undefined) return;
      const tokens = parseFile(this.#deps.path, text);
      this.#complaint = undefined;
      if (text === this.#text) return;
      this.#text = text;
      this.#tokens = tokens;
      this.#deps.onReload(tokens);
    } catch (error) {
      const bad = error instanceof Error ? error : new Error(String(error));
      if (bad.message === this.#complaint) return;
      this.#complaint = bad.message;
      this.#deps.onBad(bad);
    }
  }
}

function parseFile(path: string, text: string): ApiToken[] {
  try {
    return parseTokens(text);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(`LEASE_TOKENS_FILE ${path}: ${why}`, { cause: error });
  }
}
