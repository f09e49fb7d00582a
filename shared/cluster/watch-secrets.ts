import { z } from "zod";
import { type NamespacesWatch, watchNamespaces } from "./watch-namespaces.ts";

export interface SecretName {
  namespace: string;
  name: string;
}

export interface WatchSecretsOptions extends NamespacesWatch {
  /** One that is new, or has changed. A rejection brings the same again later. */
  onChanged: (secret: SecretName & { resourceVersion: string }) => Promise<void>;
  /** A rejection brings the same again later. */
  onGone: (secret: SecretName) => Promise<void>;
}

/** Anything else would be a whole Secret, from a server that does not know the form: refused. */
const metadata = z.object({
  kind: z.literal("PartialObjectMetadata"),
  metadata: z.object({ namespace: z.string(), name: z.string(), resourceVersion: z.string() }),
});

/**
 * Lists and watches the Secrets of some namespaces, or of all, as metadata: their content is neither asked for nor kept.
 * (`kubectl apply` copies it into an annotation, so nothing of the metadata but what is named here may be passed on.)
 * Needs `list` and `watch`. Resolves when the signal fires.
 */
export async function watchSecrets(options: WatchSecretsOptions): Promise<void> {
  await watchNamespaces({
    ...options,
    kind: { group: "", version: "v1", plural: "secrets" },
    metadataOnly: true,
    onChange: async (change) => {
      if (change.kind === "gone") return options.onGone(nameOf(change.key));
      await options.onChanged(metadata.parse(change.object).metadata);
    },
  });
}

function nameOf(key: string): SecretName {
  const [namespace = "", name = ""] = key.split("/");
  return { namespace, name };
}
