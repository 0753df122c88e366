/**
 * Selects the proxy for a server by the usual variables, in upper or lower case: HTTPS_PROXY or HTTP_PROXY, then
 * ALL_PROXY, unless NO_PROXY contains the host. Loopback is never proxied, as in Go's net/http.
 */
export function selectProxy(server: URL, env: NodeJS.ProcessEnv): string | undefined {
  const read = (name: string) => env[name.toLowerCase()] || env[name] || undefined;
  const proxy =
    read(server.protocol === "https:" ? "HTTPS_PROXY" : "HTTP_PROXY") ?? read("ALL_PROXY");
  if (proxy === undefined || isLoopback(server.hostname)) return undefined;
  const bypassed = (read("NO_PROXY") ?? "")
    .split(",")
    .some((entry) => matches(entry.trim(), server));
  if (bypassed) return undefined;
  return proxy.includes("://") ? proxy : `http://${proxy}`;
}

function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(hostname);
}

function matches(entry: string, { hostname, port, protocol }: URL): boolean {
  if (entry === "") return false;
  if (entry === "*") return true;
  const host = hostname.replace(/^\[(.*)\]$/, "$1").toLowerCase();
  const cidr = /^(\d+\.\d+\.\d+\.\d+)\/(\d+)$/.exec(entry);
  if (cidr !== null) return inNetwork(host, cidr[1] ?? "", Number(cidr[2]));
  const [, name = "", wantedPort] = /^(.*?)(?::(\d+))?$/.exec(entry.toLowerCase()) ?? [];
  const actualPort = port === "" ? (protocol === "https:" ? "443" : "80") : port;
  if (wantedPort !== undefined && wantedPort !== actualPort) return false;
  const domain = name.replace(/^\*?\./, "");
  return host === domain || host.endsWith(`.${domain}`);
}

function inNetwork(host: string, network: string, bits: number): boolean {
  const [address, base] = [toNumber(host), toNumber(network)];
  if (address === undefined || base === undefined || bits > 32) return false;
  const size = 2 ** (32 - bits);
  return Math.floor(address / size) === Math.floor(base / size);
}

function toNumber(address: string): number | undefined {
  const parts = address.split(".").map(Number);
  if (parts.length !== 4 || parts.some((part) => !(part >= 0 && part <= 255))) return undefined;
  return parts.reduce((sum, part) => sum * 256 + part, 0);
}
