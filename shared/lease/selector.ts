/** Which proxies a request is about. What is absent matches everything. */
export interface Selector {
  namespace?: string | undefined;
  provider?: string | undefined;
  region?: string | undefined;
  zone?: string | undefined;
  /** All of them must be there with these values. */
  labels?: Record<string, string> | undefined;
}

/** What a selector looks at. */
interface Selectable {
  namespace: string;
  provider: string;
  region: string;
  zone: string;
}

/** `namespaces`: those that the caller may see; undefined: all. Labels are judged apart: buckets do not have them. */
export function matchesPlace(
  place: Selectable,
  selector: Selector,
  namespaces: readonly string[] | undefined,
): boolean {
  const same = (wanted: string | undefined, actual: string): boolean => wanted === undefined || wanted === actual;
  return (
    (namespaces === undefined || namespaces.includes(place.namespace)) &&
    same(selector.namespace, place.namespace) &&
    same(selector.provider, place.provider) &&
    same(selector.region, place.region) &&
    same(selector.zone, place.zone)
  );
}

export function matchesLabels(labels: Record<string, string>, wanted: Record<string, string> = {}): boolean {
  return Object.entries(wanted).every(([key, value]) => Object.hasOwn(labels, key) && labels[key] === value);
}
