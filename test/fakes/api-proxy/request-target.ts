type Verb = "get" | "list" | "watch" | "create" | "update" | "patch" | "delete" | "deletecollection" | "other";

/** What a request to a Kubernetes API is about. What its path does not name is "". */
export interface RequestTarget {
  verb: Verb;
  resource: string;
  namespace: string;
  name: string;
  subresource: string;
}

/** Reads method and path as Kubernetes itself does for its audit log; `other` for what is no resource (discovery, health). */
export function requestTarget(method: string, url: URL): RequestTarget {
  const [root, ...rest] = url.pathname.split("/").filter(Boolean).map(decodeURIComponent);
  const path = root === "api" ? rest.slice(1) : rest.slice(2);
  if ((root !== "api" && root !== "apis") || path.length === 0)
    return { verb: "other", resource: "", namespace: "", name: "", subresource: "" };
  const inside = path[0] === "namespaces" && path.length > 2 && path[2] !== "status";
  const [resource = "", name = "", subresource = ""] = inside ? path.slice(2) : path;
  const watches = ["true", "1"].includes(url.searchParams.get("watch") ?? "");
  return { verb: verbOf(method, name, watches), resource, namespace: (inside && path[1]) || "", name, subresource };
}

function verbOf(method: string, name: string, watches: boolean): Verb {
  if (method === "GET") return watches ? "watch" : name === "" ? "list" : "get";
  if (method === "DELETE") return name === "" ? "deletecollection" : "delete";
  if (method === "POST") return "create";
  if (method === "PUT") return "update";
  return method === "PATCH" ? "patch" : "other";
}
