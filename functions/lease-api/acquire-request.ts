import { z } from "zod";
import { dnsLabelPattern } from "#shared/model/names.ts";

const label = z.string().max(63).regex(new RegExp(dnsLabelPattern), "expected a DNS label: a-z, 0-9 and -");
/** JSON can spell half a character (`"\\ud800"`), which no UTF-8 can say: Redis would hold another text. */
const text = z.string().refine((value) => value.isWellFormed(), "expected Unicode text without lone surrogates");
const place = text.min(1).max(63);

/** A site that a lease is for. Lower case, so that one site has one name. */
export const target = z
  .string()
  .max(253)
  .regex(
    /^(?=.)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*$/,
    "expected a lower-case host name",
  )
  .describe("Host name of the site that the proxy is wanted for.");

export const owner = z
  .string()
  .max(128)
  .regex(/^[\x21-\x7e]+$/, "expected printable ASCII without spaces")
  .describe("Who uses the lease, in the words of the client: one of its workers.");

/** `<namespace>/<name>` of a Proxy. */
export const proxyName = z
  .string()
  .max(317)
  .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?\/[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/, "expected namespace/name");

export const namespace = label.describe("Namespace of the Proxy.");
export const provider = label.describe("Configured name of a provider.");

const selector = z
  .strictObject({
    namespace: namespace.optional(),
    provider: provider.optional(),
    region: place.optional(),
    zone: place.optional(),
    labels: z
      .record(text.min(1).max(317), text.max(63))
      .refine((labels) => Object.keys(labels).length <= 16, "expected at most 16 labels")
      .optional()
      .describe("Labels of the Proxy; all of them must be there."),
  })
  .describe("Which proxies are wanted. What is absent matches all.");

/** No body at all asks for any proxy: `curl -X POST` is enough for a first look. */
export const acquireRequest = z.preprocess(
  (body) => body ?? {},
  z.strictObject({
    target: target.optional(),
    ttlSeconds: z.int().min(10).max(3600).default(300).describe("How long the lease lasts."),
    selector: selector.prefault({}),
    owner: owner.optional(),
  }),
);

/** The Lease-Token header of calls on one lease. */
export const leaseTokenHeader = z.looseObject({ "lease-token": z.string().min(1).max(256).optional() });

/** Where a list goes on: the `nextCursor` of the answer before. */
const notACursor = "expected the nextCursor of the answer before";
const cursor = z.string().max(1024, { error: notACursor, abort: true });

/** Of leases: where Redis's scan of an index goes on. Redis refuses more than 64 bits. */
export const leaseCursor = cursor
  .regex(/^\d{1,20}$/, { error: notACursor, abort: true })
  .refine((digits) => BigInt(digits) < 2n ** 64n, notACursor);

/** Of proxies: namespace, name and member of the last one, in base64url. */
export const proxyCursor = cursor.refine((encoded) => {
  const bytes = Buffer.from(encoded, "base64url");
  return bytes.toString("base64url") === encoded && /^[^/]+\/[^/]+\/[^/]+:\d+$/.test(bytes.toString());
}, notACursor);

export const leaseId = z.string().min(1).max(128);
