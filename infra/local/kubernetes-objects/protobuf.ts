import protobuf from "protobufjs";
import { z } from "zod";

// From the generated.proto files of k8s.io/apimachinery and k8s.io/api: what kubectl itself sends as protobuf (create
// namespace, secret, configmap), without the fields that only a server sets. Answers are always JSON.
const { root } = protobuf.parse(`
  syntax = "proto3";
  message Unknown { TypeMeta typeMeta = 1; bytes raw = 2; }
  message TypeMeta { string apiVersion = 1; string kind = 2; }
  message ObjectMeta {
    string name = 1; string namespace = 3; map<string, string> labels = 11; map<string, string> annotations = 12;
  }
  message Namespace { ObjectMeta metadata = 1; }
  message Secret { ObjectMeta metadata = 1; map<string, bytes> data = 2; string type = 3; }
  message ConfigMap { ObjectMeta metadata = 1; map<string, string> data = 2; map<string, bytes> binaryData = 3; }
`);

const envelope = z.object({
  typeMeta: z.object({ apiVersion: z.string(), kind: z.enum(["Namespace", "Secret", "ConfigMap"]) }),
  raw: z.base64(),
});
const metadata = z.looseObject({ namespace: z.string().transform((name) => name || undefined) }).partial();
const content = z.looseObject({ metadata }); // Go writes an empty namespace where it means none

/** The object in a protobuf body: an envelope behind four magic bytes. Throws when it is none, or of another kind. */
export function decodeProtobuf(body: Buffer): object {
  const { typeMeta, raw } = envelope.parse(decode("Unknown", body.subarray(4)));
  return { ...typeMeta, ...content.parse(decode(typeMeta.kind, Buffer.from(raw, "base64"))) };
}

function decode(name: string, bytes: Buffer): object {
  const type = root.lookupType(name);
  return type.toObject(type.decode(bytes), { bytes: String });
}
