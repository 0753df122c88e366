import { isIP } from "node:net";

/**
 * The string formats that are checked, as the library of the real server checks them; others are informative. The real
 * server checks about twenty more.
 */
const FORMATS: Readonly<Record<string, (value: string) => boolean>> = {
  "date-time": (value) => {
    const [day = "", time = ""] = value.toLowerCase().split("t");
    const [, hours, minutes, seconds] = TIME.exec(time) ?? [];
    return isDate(day) && isUpTo("23", hours) && isUpTo("59", minutes) && isUpTo("59", seconds);
  },
  date: isDate,
  uuid: (value) =>
    /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i.test(value),
  // An IPv6 address that ends in an IPv4 address has both formats.
  ipv4: (value) => isAddress(value) && value.includes("."),
  ipv6: (value) => isAddress(value) && value.includes(":"),
  cidr: (value) => {
    const [, address = "", bits = ""] = /^([^/]+)\/(\d{1,6})$/.exec(value) ?? [];
    return isAddress(address) && Number(bits) <= (address.includes(":") ? 128 : 32);
  },
  email: (value) => /^[^\s@]+@[^\s@]+$/.test(value),
  byte: (value) =>
    /^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$/.test(value),
};

const TIME = /^(\d\d):(\d\d):(\d\d)(.\d+)?(z|[+-]\d\d:\d\d)$/;

const isUpTo = (last: string, digits: string | undefined) => digits !== undefined && digits <= last;

/**
 * Node.js accepts zones as in `fe80::1%eth0`, the real server does not. The server accepts leading zeros as in `010.0.0.1`,
 * Node.js does not.
 */
const isAddress = (value: string) =>
  isIP(value.replaceAll(LEADING_ZEROS, "")) !== 0 && !value.includes("%");

const LEADING_ZEROS = /\b0+(?=\d+\.)|(?<=\.)0+(?=\d)/g;

function isDate(value: string): boolean {
  const parsed = /^\d{4}-\d\d-\d\d$/.test(value) ? new Date(value) : new Date(Number.NaN);
  // JavaScript takes 30 February as a day in March.
  return !Number.isNaN(parsed.getTime()) && parsed.toISOString().startsWith(value);
}

/** Returns whether a text has a format of schemas. A format that is not checked holds. */
export const hasFormat = (format: string, text: string): boolean =>
  !Object.hasOwn(FORMATS, format) || FORMATS[format]?.(text) === true;
