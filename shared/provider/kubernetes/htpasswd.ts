import { createHash } from "node:crypto";
import { encrypt } from "unixcrypt";
import { Failure } from "#shared/errors/failure.ts";
import type { Credentials } from "#shared/model/registry-record.ts";

/**
 * The password file of one proxy: `user:hash` in crypt(3)'s SHA-512 scheme, which every basic_ncsa_auth accepts. The
 * salt follows from `instanceName`, which no two instances share, so that a repeated create makes the same file. Takes
 * about 20 ms. Throws Permanent `InvalidCredentials`, without the credentials, for what no client could log in with.
 */
export function htpasswd(instanceName: string, { username, password }: Credentials): string {
  // The file has one line per user, `#` begins a comment, and Basic auth cannot carry a colon in the name.
  if (!/^[^\s:#\p{Cc}][^:\p{Cc}]*$/u.test(username)) {
    throw invalid("username must not be empty, begin with # or a space, or hold a colon or control character");
  }
  // Squid refuses an empty password before it asks anybody.
  if (!/^\P{Cc}+$/u.test(password)) throw invalid("password must not be empty or hold a control character");
  const salt = createHash("sha256").update(instanceName).digest("hex").slice(0, 16);
  return `${username}:${encrypt(password, `$6$${salt}`)}\n`;
}

function invalid(what: string): Failure {
  return new Failure({
    class: "Permanent",
    code: "InvalidCredentials",
    message: `credentials of the Proxy: ${what}: change its auth Secret`,
  });
}
