import { coreSchema } from "./core-schemas.ts";
import { objectAt, objectsAt } from "./json.ts";
import type { Column, Kind } from "./kind.ts";
import type { StoredObject } from "./stored-object.ts";

function column(name: string, type: string, cell: Column["cell"], priority = 0): Column {
  return { name, type, description: name, priority, cell };
}

export const ageColumn = column("Age", "date", (object) => object.metadata.creationTimestamp);

/** The built-in kinds, in the order of discovery: of two groups with the same name the first one wins in kubectl. */
export const coreKinds: Kind[] = [
  core("", "v1", "Namespace", "namespaces", {
    namespaced: false,
    shortNames: ["ns"],
    hasStatus: true,
    columns: [column("Status", "string", (object) => objectAt(object, "status")["phase"]), ageColumn],
  }),
  core("", "v1", "Secret", "secrets", {
    columns: [column("Type", "string", (object) => object["type"]), dataColumn(), ageColumn],
  }),
  core("", "v1", "ConfigMap", "configmaps", { shortNames: ["cm"], columns: [dataColumn(), ageColumn] }),
  core("", "v1", "Pod", "pods", { shortNames: ["po"], categories: ["all"], hasStatus: true, columns: podColumns() }),
  core("", "v1", "Event", "events", { ...eventKind("lastTimestamp", "involvedObject", "message") }),
  core("events.k8s.io", "v1", "Event", "events", {
    ...eventKind("deprecatedLastTimestamp", "regarding", "note"),
    renamed: [
      ["regarding", "involvedObject"],
      ["note", "message"],
      ["reportingController", "reportingComponent"],
      ["deprecatedSource", "source"],
      ["deprecatedFirstTimestamp", "firstTimestamp"],
      ["deprecatedLastTimestamp", "lastTimestamp"],
      ["deprecatedCount", "count"],
    ],
  }),
  core("coordination.k8s.io", "v1", "Lease", "leases", {
    columns: [column("Holder", "string", (object) => objectAt(object, "spec")["holderIdentity"]), ageColumn],
  }),
  core("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", {
    namespaced: false,
    shortNames: ["crd", "crds"],
    hasStatus: true,
    columns: [column("Created At", "string", (object) => object.metadata.creationTimestamp)],
  }),
];

function core(group: string, version: string, kind: string, plural: string, extra: Partial<Kind>): Kind {
  const className = kind === "Event" ? (group === "" ? "CoreV1Event" : "EventsV1Event") : `V1${kind}`;
  return {
    group,
    version,
    kind,
    plural,
    singular: kind.toLowerCase(),
    shortNames: [],
    categories: [],
    namespaced: true,
    hasStatus: false,
    schema: coreSchema(className),
    columns: [ageColumn],
    custom: false,
    storeKey: `${group}/${plural}`,
    selectableFields: undefined,
    renamed: [],
    ...extra,
  };
}

function dataColumn(): Column {
  const count = (object: StoredObject, key: string): number => Object.keys(objectAt(object, key)).length;
  return column("Data", "integer", (object) => count(object, "data") + count(object, "binaryData"));
}

function eventKind(lastSeen: string, about: string, message: string): Partial<Kind> {
  const target = (object: StoredObject): string => {
    const { kind, name } = objectAt(object, about);
    return `${String(kind).toLowerCase()}/${String(name)}`;
  };
  return {
    shortNames: ["ev"],
    storeKey: "/events",
    columns: [
      column("Last Seen", "date", (object) => object[lastSeen] ?? object["eventTime"]),
      column("Type", "string", (object) => object["type"]),
      column("Reason", "string", (object) => object["reason"]),
      column("Object", "string", target),
      column("Message", "string", (object) => object[message]),
    ],
  };
}

function podColumns(): Column[] {
  const status = (object: StoredObject): unknown => objectAt(object, "status");
  const containers = (object: StoredObject): ReturnType<typeof objectsAt> =>
    objectsAt(status(object), "containerStatuses");
  const ready = (object: StoredObject): string =>
    `${containers(object).filter((one) => one["ready"] === true).length}/${objectsAt(object["spec"], "containers").length}`;
  const phase = (object: StoredObject): unknown =>
    object.metadata.deletionTimestamp === undefined
      ? (objectAt(object, "status")["reason"] ?? objectAt(object, "status")["phase"])
      : "Terminating";
  return [
    column("Ready", "string", ready),
    column("Status", "string", phase),
    column("Restarts", "integer", (object) =>
      containers(object).reduce((sum, one) => sum + Number(one["restartCount"] ?? 0), 0),
    ),
    ageColumn,
    column("IP", "string", (object) => objectAt(object, "status")["podIP"], 1),
    column("Node", "string", (object) => objectAt(object, "spec")["nodeName"], 1),
  ];
}
