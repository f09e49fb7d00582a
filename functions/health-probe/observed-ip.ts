import { isIP } from "node:net";
import { z } from "zod";

const echo = z.object({ ip: z.unknown(), origin: z.unknown(), address: z.unknown() }).partial();

/**
 * The address that an echo site says it saw: plain text, or JSON with `ip`, `origin` or `address`. Undefined for
 * anything else; only what is an address leaves this function.
 */
export function observedIP(body: Buffer): string | undefined {
  const text = body.toString("utf8").trim();
  return [text, ...fromJson(text)].map((each) => each.trim()).find((each) => isIP(each) !== 0 && !each.includes("%"));
}

function fromJson(text: string): string[] {
  if (!text.startsWith("{")) return [];
  try {
    const { ip, origin, address } = echo.parse(JSON.parse(text));
    return [ip, origin, address].filter((each) => typeof each === "string");
  } catch {
    return []; // a page that only looks like JSON is no echo
  }
}
