import { isIPv4, isIPv6 } from "node:net";
import { CelError, Opaque } from "../values/value.ts";
import { global, member, type Overload } from "./declaration.ts";

/** An address in canonical form, such as `::1`. */
type Address = Opaque<string>;
/** A network in canonical form, such as `10.0.0.0/8`. */
type Network = Opaque<string>;

const IP = "net.IP";
const CIDR = "net.CIDR";
const ADDRESS_LIMIT = 128;

/** Returns the canonical form of an address; undefined for zones and for IPv4 addresses written as IPv6. */
function canonical(text: string): string | undefined {
  if (isIPv4(text)) return text;
  if (!isIPv6(text) || text.includes("%")) return undefined;
  const hostname = new URL(`http://[${text}]`).hostname.slice(1, -1);
  return hostname.startsWith("::ffff:") ? undefined : hostname;
}

const widthOf = (address: string) => (isIPv4(address) ? 32 : ADDRESS_LIMIT);

/** Returns the bits of a canonical address as a number. */
function bitsOf(address: string): bigint {
  if (isIPv4(address)) {
    return address.split(".").reduce((bits, part) => bits * 256n + BigInt(part), 0n);
  }
  const [head = [], tail] = address
    .split("::")
    .map((part) => part.split(":").filter((group) => group !== ""));
  const missing = tail === undefined ? 0 : 8 - head.length - tail.length;
  const groups = [...head, ...Array.from({ length: missing }, () => "0"), ...(tail ?? [])];
  return groups.reduce((bits, group) => bits * 65_536n + BigInt(`0x${group}`), 0n);
}

function addressOf(bits: bigint, width: number): string {
  if (width === 32) {
    return [24n, 16n, 8n, 0n].map((shift) => (bits >> shift) & 255n).join(".");
  }
  const groups = Array.from({ length: 8 }, (_, index) =>
    ((bits >> BigInt(112 - index * 16)) & 65_535n).toString(16),
  );
  return canonical(groups.join(":")) ?? groups.join(":");
}

function toAddress(text: string): Address {
  const address = canonical(text);
  if (address !== undefined) return new Opaque(IP, address);
  if (text.includes("%")) {
    throw new CelError(`IP address ${JSON.stringify(text)} with zone value is not allowed`);
  }
  throw new CelError(
    isIPv6(text)
      ? `IPv4-mapped IPv6 address ${JSON.stringify(text)} is not allowed`
      : `IP Address ${JSON.stringify(text)} parse error during conversion from string: ParseAddr(${JSON.stringify(text)}): unable to parse IP`,
  );
}

function parseNetwork(text: string): string | undefined {
  const [, ip = "", length = ""] = /^(.*)\/(0|[1-9]\d{0,2})$/.exec(text) ?? [];
  const address = canonical(ip);
  if (address === undefined || Number(length) > widthOf(address)) return undefined;
  return `${address}/${length}`;
}

function toNetwork(text: string): Network {
  const network = parseNetwork(text);
  if (network !== undefined) return new Opaque(CIDR, network);
  const why = "network address parse error during conversion from string";
  throw new CelError(`${why}: ${why}: netip.ParsePrefix(${JSON.stringify(text)}): invalid`);
}

interface Prefix {
  readonly address: string;
  readonly bits: bigint;
  readonly width: number;
  readonly length: number;
}

function prefixOf({ content }: Network): Prefix {
  const [address = "", length = ""] = content.split("/");
  return { address, bits: bitsOf(address), width: widthOf(address), length: Number(length) };
}

/** Returns the bits of a network that an address has to share. */
const leading = (bits: bigint, { width, length }: Prefix) => bits >> BigInt(width - length);

function containsAddress(network: Network, { content }: Address): boolean {
  const prefix = prefixOf(network);
  const isSameFamily = widthOf(content) === prefix.width;
  return isSameFamily && leading(bitsOf(content), prefix) === leading(prefix.bits, prefix);
}

function containsNetwork(network: Network, other: Network): boolean {
  const [outer, inner] = [prefixOf(network), prefixOf(other)];
  return (
    outer.width === inner.width &&
    outer.length <= inner.length &&
    leading(inner.bits, outer) === leading(outer.bits, outer)
  );
}

function masked(network: Network): Network {
  const prefix = prefixOf(network);
  const shift = BigInt(prefix.width - prefix.length);
  const address = addressOf((prefix.bits >> shift) << shift, prefix.width);
  return new Opaque(CIDR, `${address}/${prefix.length}`);
}

const within =
  (...networks: readonly string[]) =>
  (address: Address) =>
    networks.some((network) => containsAddress(new Opaque(CIDR, network), address));
const isUnspecified = ({ content }: Address) => content === "0.0.0.0" || content === "::";
const isLoopback = within("127.0.0.0/8", "::1/128");
const isLinkLocalUnicast = within("169.254.0.0/16", "fe80::/10");
const isLinkLocalMulticast = within("224.0.0.0/24", "ff02::/16");
const isMulticast = within("224.0.0.0/4", "ff00::/8");

function isGlobalUnicast(address: Address): boolean {
  return (
    address.content !== "255.255.255.255" &&
    !isUnspecified(address) &&
    !isLoopback(address) &&
    !isMulticast(address) &&
    !isLinkLocalUnicast(address)
  );
}

const show = ({ content }: Opaque<string>) => content;

export const ADDRESSES: readonly Overload[] = [
  global("ip", `string -> ${IP}`, toAddress),
  global("isIP", "string -> bool", (text: string) => canonical(text) !== undefined),
  global("ip.isCanonical", "string -> bool", (text: string) => toAddress(text).content === text),
  global("string", `${IP} -> string`, show),
  member("family", `${IP} -> int`, ({ content }: Address) => (isIPv4(content) ? 4n : 6n)),
  member("isUnspecified", `${IP} -> bool`, isUnspecified),
  member("isLoopback", `${IP} -> bool`, isLoopback),
  member("isLinkLocalMulticast", `${IP} -> bool`, isLinkLocalMulticast),
  member("isLinkLocalUnicast", `${IP} -> bool`, isLinkLocalUnicast),
  member("isGlobalUnicast", `${IP} -> bool`, isGlobalUnicast),
  global("cidr", `string -> ${CIDR}`, toNetwork),
  global("isCIDR", "string -> bool", (text: string) => parseNetwork(text) !== undefined),
  global("string", `${CIDR} -> string`, show),
  member("containsIP", `${CIDR}, string -> bool`, (network: Network, text: string) =>
    containsAddress(network, toAddress(text)),
  ),
  member("containsIP", `${CIDR}, ${IP} -> bool`, containsAddress),
  member("containsCIDR", `${CIDR}, string -> bool`, (network: Network, text: string) =>
    containsNetwork(network, toNetwork(text)),
  ),
  member("containsCIDR", `${CIDR}, ${CIDR} -> bool`, containsNetwork),
  member("ip", `${CIDR} -> ${IP}`, (network: Network) => new Opaque(IP, prefixOf(network).address)),
  member("prefixLength", `${CIDR} -> int`, (network: Network) => BigInt(prefixOf(network).length)),
  member("masked", `${CIDR} -> ${CIDR}`, masked),
];
