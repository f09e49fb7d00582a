import { expect, test } from "vitest";
import { parseProviders } from "./config.ts";
import { kubernetesSettings } from "./kubernetes/settings.ts";

function entry(settings: string, type = "kubernetes"): string {
  return `providers: [{name: ok, type: kubernetes}, {name: lab, type: ${type}, ${settings}}]`;
}

/** Twelve lines of nine aliases each of the line before. */
const bomb = [
  'l0: &l0 ["x"]',
  ...Array.from({ length: 12 }, (_, n) => `l${n + 1}: &l${n + 1} [${Array(9).fill(`*l${n}`).join(", ")}]`),
].join("\n");

test("a provider needs a name and a type, everything else has a default", () => {
  const [lab] = parseProviders("providers:\n- name: lab\n  type: kubernetes\n");
  expect(lab).toMatchObject({
    name: "lab",
    type: "kubernetes",
    concurrency: 10,
    kubernetes: {
      image: "ubuntu/squid:6.6-24.04_edge",
      connectPorts: [443],
      allowDestinations: [],
      insecureNoAuth: false,
    },
  });
});

test("a file of the Go system loads unchanged", () => {
  const file =
    "providers:\n  - name: kubernetes\n    type: kubernetes\n    kubernetes:\n      image: ubuntu/squid:6.6-24.04_edge\n";
  expect(parseProviders(file)).toHaveLength(1);
  expect(parseProviders("providers:\n- name: a\n  type: kubernetes\n  kubernetes:\n")).toHaveLength(1);
});

test.each([
  [
    "a wrong type",
    entry('kubernetes: {connectPorts: ["443"]}'),
    /^providers\[1\]\.kubernetes\.connectPorts\[0\]: expected a number, not text: remove the quotes$/m,
  ],
  [
    "a port out of range",
    entry("kubernetes: {connectPorts: [70000]}"),
    /^providers\[1\]\.kubernetes\.connectPorts\[0\]: .*65535/m,
  ],
  ["an unknown key of a block", entry("kubernetes: {imgae: x}"), /^providers\[1\]\.kubernetes\.imgae: unknown key/m],
  ["an unknown key of a provider", entry("colour: red"), /^providers\[1\]\.colour: unknown key/m],
  ["an unknown key of the file", "providers: [{name: a, type: kubernetes}]\nmore: 1", /^more: unknown key/m],
  ["another type's block", entry("gcp: {project: p}"), /^providers\[1\]\.gcp: a block of type gcp/m],
  ["a type that is planned", entry("kvm: {}", "kvm"), /^providers\[1\]\.type: type kvm is not built in yet/m],
  [
    "a type that nobody knows",
    entry("concurrency: 1", "aws"),
    /^providers\[1\]\.type: expected one of kubernetes, received "aws"/m,
  ],
  ["a missing type", "providers: [{name: a}]", /^providers\[0\]\.type: .*received nothing/m],
  [
    "a duplicate name",
    "providers: [{name: a, type: kubernetes}, {name: a, type: kubernetes}]",
    /^providers\[1\]\.name: a is already the name of providers\[0\]/m,
  ],
  [
    "a name that is no DNS label",
    "providers: [{name: Lab_1, type: kubernetes}]",
    /^providers\[0\]\.name: expected a DNS label.*rename/m,
  ],
  [
    "a name that is too long",
    `providers: [{name: ${"a".repeat(64)}, type: kubernetes}]`,
    /^providers\[0\]\.name: .*63/m,
  ],
  ["no provider", "providers: []", /^providers: expected at least one provider/m],
  ["an empty file", "", /^the file: expected the key providers with a list$/m],
  ["a list without a key", "[{name: a, type: kubernetes}]", /^the file: expected the key providers/m],
  ["a key without a list", "providers:", /^providers: expected a list of providers$/m],
  ["a number as the name", "providers: [{name: 7, type: kubernetes}]", /^providers\[0\]\.name: expected text/m],
  [
    "an amount of the wrong type",
    entry("kubernetes: {resources: {limits: {cpu: true}}}"),
    /^providers\[1\]\.kubernetes\.resources\.limits\.cpu: expected text or a number, not true or false$/m,
  ],
  ["aliases that expand to gigabytes", bomb, /^not YAML that can be read: its aliases expand to too much/m],
  ["an alias of nothing", "providers: *nobody", /^not YAML/m],
  ["a type that contains itself", "providers: [{name: a, type: &t [*t]}]", /^providers\[0\]\.type: .*a list/m],
  [
    "a block that contains itself",
    entry("kubernetes: &k {nodeSelector: *k}"),
    /nodeSelector\.nodeSelector: expected text/m,
  ],
  ["an entry that is no object", "providers: [lab]", /^providers\[0\]: expected a provider with name and type/m],
  ["a key given twice", "providers: [{name: a, name: b, type: kubernetes}]", /^not YAML: .*line 1/m],
  [
    "an address without a prefix",
    entry("kubernetes: {allowSources: [10.0.0.1]}"),
    /^providers\[1\]\.kubernetes\.allowSources\[0\]: 10\.0\.0\.1: expected a block/m,
  ],
  [
    "a destination without a port",
    entry("kubernetes: {allowDestinations: [10.0.0.1/32]}"),
    /^providers\[1\]\.kubernetes\.allowDestinations\[0\]: .*expected CIDR:port/m,
  ],
  [
    "an amount that is none",
    entry("kubernetes: {resources: {limits: {memory: lots}}}"),
    /^providers\[1\]\.kubernetes\.resources\.limits\.memory: /m,
  ],
])("%s is an error that names its path", (_, text, expected) => {
  expect(() => parseProviders(text)).toThrow(expected);
});

test.each([bomb, "providers: [{name: a, type: &t [*t]}]", "providers: *nobody", "- {", ""])(
  "whatever is wrong with a file, it is said as that: %j",
  (text) => {
    expect(() => parseProviders(text)).toThrow(expect.objectContaining({ code: "InvalidProvidersFile" }));
  },
);

test("no message has words of the schema library", () => {
  const settings = Object.keys(kubernetesSettings.shape).map((key) => `${key}: !!float 1.5`);
  const wrong = [
    entry(`kubernetes: {${settings.join(", ")}}`),
    entry("concurrency: x"),
    "providers: [{name: [], type: kubernetes}]",
  ];
  for (const text of wrong) expect(() => parseProviders(text)).toThrow(/^(?!.*(Invalid|Too (big|small)|received))/s);
});

test("all errors are named at once", () => {
  const file = "providers: [{name: A, type: kubernetes}, {name: b, type: kubernetes, kubernetes: {connectPorts: []}}]";
  expect(() => parseProviders(file)).toThrow(/providers\[0\]\.name[^]*providers\[1\]\.kubernetes\.connectPorts/);
});

test("the revision follows the settings, not the name or the concurrency", () => {
  const revision = (text: string): string | undefined => parseProviders(text)[0]?.revision;
  const plain = revision("providers: [{name: a, type: kubernetes}]");
  expect(revision("providers: [{name: b, type: kubernetes, concurrency: 3, kubernetes: {connectPorts: [443]}}]")).toBe(
    plain,
  );
  expect(revision("providers: [{name: a, type: kubernetes, kubernetes: {connectPorts: [8443]}}]")).not.toBe(plain);
});
