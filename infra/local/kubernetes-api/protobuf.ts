// Field numbers come from the generated.proto files of k8s.io/apimachinery and k8s.io/api (core/v1). Only what kubectl
// itself sends as protobuf is here; answers are always JSON.
interface Field {
  name: string;
  read(bytes: Buffer): unknown;
  /** How several occurrences become one value: the last one wins when undefined. */
  join?: "list" | "map";
}
type Message = Record<number, Field>;

const text = (bytes: Buffer): string => bytes.toString("utf8");
const base64 = (bytes: Buffer): string => bytes.toString("base64");
const mapOf = (name: string, read: Field["read"]): Field => ({
  name,
  read: (bytes) => entry(bytes, read),
  join: "map",
});
const one = (name: string, message: Message): Field => ({ name, read: (bytes) => decode(bytes, message) });

const metadata: Message = {
  1: { name: "name", read: text },
  2: { name: "generateName", read: text },
  3: { name: "namespace", read: text },
  11: mapOf("labels", text),
  12: mapOf("annotations", text),
  14: { name: "finalizers", read: text, join: "list" },
};

const messages: Record<string, Message> = {
  Namespace: { 1: one("metadata", metadata) },
  Secret: {
    1: one("metadata", metadata),
    2: mapOf("data", base64),
    3: { name: "type", read: text },
    4: mapOf("stringData", text),
  },
  ConfigMap: { 1: one("metadata", metadata), 2: mapOf("data", text), 3: mapOf("binaryData", base64) },
};

/** Decodes the envelope (runtime.Unknown behind four magic bytes) and the object in it. Throws when it is neither. */
export function decodeProtobuf(body: Buffer): object {
  if (body.subarray(0, 4).toString("latin1") !== "k8s\0") throw new Error("not a Kubernetes protobuf message");
  const envelope = new Map(fields(body.subarray(4)));
  const type = new Map(fields(envelope.get(1) ?? Buffer.alloc(0)));
  const apiVersion = text(type.get(1) ?? Buffer.alloc(0));
  const kind = text(type.get(2) ?? Buffer.alloc(0));
  const message = Object.hasOwn(messages, kind) ? messages[kind] : undefined;
  if (message === undefined) throw new Error(`protobuf is not supported for ${kind}: send JSON`);
  return { apiVersion, kind, ...decode(envelope.get(2) ?? Buffer.alloc(0), message) };
}

function decode(bytes: Buffer, message: Message): Record<string, unknown> {
  const values = new Map<string, unknown[]>();
  const joins = new Map<string, Field["join"]>();
  for (const [number, content] of fields(bytes)) {
    const field = message[number];
    if (field === undefined || content.length === 0) continue; // Go writes empty strings too
    values.set(field.name, [...(values.get(field.name) ?? []), field.read(content)]);
    joins.set(field.name, field.join);
  }
  return Object.fromEntries(
    [...values].map(([name, list]) => {
      const join = joins.get(name);
      return [name, join === "list" ? list : join === "map" ? Object.assign({}, ...list) : list.at(-1)];
    }),
  );
}

function entry(bytes: Buffer, read: Field["read"]): object {
  const pair = new Map(fields(bytes));
  return { [text(pair.get(1) ?? Buffer.alloc(0))]: read(pair.get(2) ?? Buffer.alloc(0)) };
}

/** The length-delimited fields of a message, as [number, content]; numbers and fixed-width values are passed over. */
function* fields(bytes: Buffer): Generator<[number, Buffer]> {
  let at = 0;
  const varint = (): number => {
    for (let value = 0, scale = 1; ; scale *= 128) {
      const byte = bytes[at++];
      if (byte === undefined) throw new Error("the protobuf message ends early");
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const tag = varint();
    const wireType = tag % 8;
    if (wireType === 0) varint();
    else if (wireType === 1) at += 8;
    else if (wireType === 5) at += 4;
    else if (wireType === 2) {
      const length = varint();
      if (at + length > bytes.length) throw new Error("the protobuf message ends early");
      yield [Math.floor(tag / 8), bytes.subarray(at, at + length)];
      at += length;
    } else throw new Error(`unknown protobuf wire type ${wireType}`);
  }
}
