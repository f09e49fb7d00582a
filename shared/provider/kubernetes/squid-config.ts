import { type Cidr, disjoint, formatCidr, parseCidr } from "./cidr.ts";
import { closedDestinations } from "./destinations.ts";
import { type KubernetesSettings, parseDestination } from "./settings.ts";

/** What a squid.conf depends on. */
export interface SquidConfigInput {
  port: number;
  /** Absolute path of the password file; undefined: no credentials are asked for. */
  htpasswdFile: string | undefined;
  settings: Pick<KubernetesSettings, "allowSources" | "connectPorts" | "allowDestinations">;
}

/**
 * The squid.conf of one proxy, for `squid -N`. Pure. Only directives that Squid 5.7 and 6.6 both know.
 * Order of http_access matters: the first line that matches decides.
 */
export function squidConfig(input: SquidConfigInput): string {
  return [process(input.port), trace, login(input.htpasswdFile), access(input)].join("\n");
}

/** One small process in the foreground that keeps nothing on disk. */
function process(port: number): string {
  return `http_port ${port}
# Shown in error pages: never the name of the host.
visible_hostname egress-proxy
pid_filename none
pinger_enable off
cache deny all
cache_mem 4 MB
memory_pools off
digest_generation off
client_db off
logfile_rotate 0
# What people fetch is nobody's business; warnings go to stderr (-d 1).
access_log none
cache_log /dev/null
# Unset, Squid sizes its tables by the limit of the node and dies of memory.
max_filedescriptors 8192
shutdown_lifetime 3 seconds
connect_timeout 10 seconds
forward_timeout 30 seconds
dns_timeout 10 seconds
# Also the least time that a good answer is kept: a name must not change its address between check and connect.
negative_dns_ttl 1 minute
`;
}

/** A site must not see that a proxy stands in between, and a client nothing that is ours in the answer. */
const trace = `via off
forwarded_for delete
httpd_suppress_version_string on
email_err_data off
global_internal_static off
reply_header_access X-Cache deny all
reply_header_access X-Cache-Lookup deny all
reply_header_access Cache-Status deny all
# Squid adds a Cache-Control of its own to requests without one.
acl has_cache_control req_header Cache-Control .
request_header_access Cache-Control allow has_cache_control
request_header_access Cache-Control deny all
`;

function login(htpasswdFile: string | undefined): string {
  if (htpasswdFile === undefined) return "";
  return `auth_param basic program /usr/lib/squid/basic_ncsa_auth ${htpasswdFile}
auth_param basic children 5 startup=1 idle=1
auth_param basic realm proxy
auth_param basic casesensitive on
auth_param basic credentialsttl 1 hour
acl logged_in proxy_auth REQUIRED
`;
}

function access({ htpasswdFile, settings }: SquidConfigInput): string {
  const sources = settings.allowSources.map((text) => valid(parseCidr(text)));
  const closed = closedDestinations(settings.allowDestinations.map((text) => valid(parseDestination(text))));
  const restricted = closed.ports.filter((one) => one.blocks.length > 0);
  const ports = closed.ports.map(({ port }) => port);
  const connect = [...new Set(settings.connectPorts)];
  return `${[
    list("acl allowed_source src", blocks(sources)),
    "acl tunnel method CONNECT",
    "acl plain_http proto HTTP",
    `acl connect_port port ${connect.join(" ")}`,
    // Below 1025 only the web's own: other services would take a request body for commands.
    `acl http_port_allowed port ${[...new Set([80, 443, ...ports])].join(" ")} 1025-65535`,
    "acl resolved dst all",
    ...restricted.flatMap(({ port, blocks: those }) => [
      `acl port_${port} port ${port}`,
      list(`acl closed_on_${port} dst`, blocks(those)),
    ]),
    ...(ports.length > 0 ? [`acl opened_port port ${ports.join(" ")}`] : []),
    list("acl closed dst", blocks(closed.others)),
    "",
    "http_access deny manager",
    "http_access deny !allowed_source",
    // Before anything is looked up: strangers learn nothing and cause no DNS query.
    ...(htpasswdFile === undefined ? [] : ["http_access deny !logged_in"]),
    "http_access deny tunnel !connect_port",
    "http_access deny !tunnel !plain_http",
    "http_access deny !tunnel !http_port_allowed",
    // A name without an address matches no dst list, but might have one a moment later.
    "deny_info 503:ERR_DNS_FAIL resolved",
    "http_access deny !resolved",
    ...restricted.map(({ port }) => `http_access deny port_${port} closed_on_${port}`),
    `http_access deny ${ports.length > 0 ? "!opened_port " : ""}closed`,
    "http_access allow all",
  ].join("\n")}\n`;
}

/** One line per block: a config line may not be longer than Squid's buffer. */
function list(head: string, values: string[]): string {
  return values.map((value) => `${head} ${value}`).join("\n");
}

/** Squid turns 0.0.0.0/0 into "all", IPv6 included; two halves mean what is written. */
function blocks(cidrs: Cidr[]): string[] {
  return disjoint(cidrs).flatMap((block) =>
    block.family === 4 && block.prefix === 0 ? ["0.0.0.0/1", "128.0.0.0/1"] : [formatCidr(block)],
  );
}

/** The settings were checked when the file was read. */
function valid<T>(parsed: T | string): T {
  if (typeof parsed === "string") throw new Error(parsed);
  return parsed;
}
