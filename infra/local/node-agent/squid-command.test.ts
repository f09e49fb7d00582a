import { expect, test } from "vitest";
import { bindConfig, serviceNameOf, squidArguments } from "./squid-command.ts";

const mounts = [
  { mountPath: "/etc/egress-proxy", folder: "/run/pods/1/config" },
  { mountPath: "/run", folder: "/run/pods/1/run" },
  { mountPath: "/etc", folder: "/run/pods/1/etc" },
];

test("a config listens on the Pod's address and reaches loopback from it; the rest stays", () => {
  const config = "# http_port 1\nhttp_port 3128\nvia off\nhttp_access allow all\n";
  expect(bindConfig(config, "127.70.1.2", [])).toBe(
    "# http_port 1\nhttp_port 127.70.1.2:3128\nvia off\nhttp_access allow all\n" +
      "# Added by the local node agent.\nacl local_node_loopback dst 127.0.0.0/8\n" +
      "tcp_outgoing_address 127.70.1.2 local_node_loopback\n",
  );
});

test("paths of mounts are where the volumes lie, the longest first and each once; other paths stay", () => {
  const config =
    "program /usr/lib/x /etc/egress-proxy/htpasswd\na /run/x\nb /running /var/run/x\nc /etc/other\nd /etc/egress-proxy-2\n";
  expect(bindConfig(config, "127.70.1.2", mounts)).toContain(
    "program /usr/lib/x /run/pods/1/config/htpasswd\na /run/pods/1/run/x\nb /running /var/run/x\nc /run/pods/1/etc/other\nd /run/pods/1/etc/egress-proxy-2\n",
  );
});

test("the command is the Pod's own, with its paths relocated and a name of its own", () => {
  const container = {
    name: "squid",
    image: "",
    command: ["/usr/sbin/squid", "-N"],
    args: ["-f", "/etc/egress-proxy/squid.conf"],
    ports: [],
    volumeMounts: [],
  };
  expect(squidArguments(container, mounts, "ep1")).toEqual(["-N", "-f", "/run/pods/1/config/squid.conf", "-n", "ep1"]);
});

test("anything but squid is refused", () => {
  const container = {
    name: "evil",
    image: "",
    command: ["/bin/sh", "-c", "squid"],
    args: [],
    ports: [],
    volumeMounts: [],
  };
  expect(() => squidArguments(container, mounts, "ep1")).toThrow(/runs "\/bin\/sh".*squid only/);
});

test("a service name has letters and digits only, and another for every Pod", () => {
  expect(serviceNameOf("b4b1ad4c-7a1f-4f3e-8a4a-5b1f3c2d1e0f")).toMatch(/^ep[0-9a-f]{20}$/);
  expect(serviceNameOf("a")).not.toBe(serviceNameOf("b"));
});
