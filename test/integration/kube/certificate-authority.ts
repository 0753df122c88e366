import { generateKeyPairSync, randomBytes, sign, type KeyObject } from "node:crypto";

interface Certificate {
  readonly cert: string;
  readonly key: string;
}

export interface CertificateAuthority {
  readonly ca: string;
  /**
   * For a server with these names (one that begins with a digit is an IPv4 address), or for a client with this name.
   */
  issue(commonName: string, names?: readonly string[]): Certificate;
}

const DAY_MS = 86_400_000;
const ECDSA_SHA256 = "1.2.840.10045.4.3.2";
const COMMON_NAME = "2.5.4.3";
const BASIC_CONSTRAINTS = "2.5.29.19";
const ALTERNATIVE_NAMES = "2.5.29.17";

/**
 * A certificate authority for tests: X.509 v3 (RFC 5280) on P-256, reduced to what TLS needs, because Node cannot
 * create certificates.
 */
export function createCertificateAuthority(): CertificateAuthority {
  const own = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const make = (commonName: string, publicKey: KeyObject, extension: Buffer) =>
    certificate({
      commonName,
      publicKey,
      extension,
      issuer: "test authority",
      signer: own.privateKey,
    });
  return {
    ca: make("test authority", own.publicKey, extensionOf(BASIC_CONSTRAINTS, sequence(TRUE))),
    issue(commonName, names = []) {
      const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
      const extension =
        names.length > 0
          ? extensionOf(ALTERNATIVE_NAMES, sequence(...names.map(alternativeName)))
          : extensionOf(BASIC_CONSTRAINTS, sequence());
      return {
        cert: make(commonName, publicKey, extension),
        key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
      };
    },
  };
}

interface Parts {
  readonly commonName: string;
  readonly publicKey: KeyObject;
  readonly extension: Buffer;
  readonly issuer: string;
  readonly signer: KeyObject;
}

function certificate({ commonName, publicKey, extension, issuer, signer }: Parts): string {
  const algorithm = sequence(objectId(ECDSA_SHA256));
  // Positive regardless of its first bit.
  const serial = Buffer.concat([Buffer.from([1]), randomBytes(8)]);
  const toSign = sequence(
    tagged(0xa0, tagged(0x02, Buffer.from([2]))),
    tagged(0x02, serial),
    algorithm,
    nameOf(issuer),
    sequence(time(Date.now() - DAY_MS), time(Date.now() + DAY_MS)),
    nameOf(commonName),
    publicKey.export({ type: "spki", format: "der" }),
    tagged(0xa3, sequence(extension)),
  );
  const whole = sequence(toSign, algorithm, bits(sign("sha256", toSign, signer)));
  const lines = whole.toString("base64").match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`;
}

/** DER: tag, length, content. */
function tagged(tag: number, ...content: readonly Buffer[]): Buffer {
  const body = Buffer.concat(content);
  const { length } = body;
  const size =
    length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), body]);
}
const TRUE = tagged(0x01, Buffer.from([0xff]));

function sequence(...content: readonly Buffer[]): Buffer {
  return tagged(0x30, ...content);
}

function bits(content: Buffer): Buffer {
  return tagged(0x03, Buffer.from([0]), content);
}

function objectId(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split(".").map(Number);
  const bytes = rest.flatMap((part) => {
    const groups = [part & 0x7f];
    for (let left = part >> 7; left > 0; left >>= 7) groups.unshift((left & 0x7f) | 0x80);
    return groups;
  });
  return tagged(0x06, Buffer.from([first * 40 + second, ...bytes]));
}

function nameOf(commonName: string): Buffer {
  const attribute = sequence(objectId(COMMON_NAME), tagged(0x0c, Buffer.from(commonName)));
  return sequence(tagged(0x31, attribute));
}

/** UTCTime. */
function time(ms: number): Buffer {
  const text = new Date(ms)
    .toISOString()
    .replaceAll(/[-:T]|\.\d+/g, "")
    .slice(2);
  return tagged(0x17, Buffer.from(text));
}

function extensionOf(id: string, value: Buffer): Buffer {
  return sequence(objectId(id), tagged(0x04, value));
}

function alternativeName(name: string): Buffer {
  return /^\d/.test(name)
    ? tagged(0x87, Buffer.from(name.split(".").map(Number)))
    : tagged(0x82, Buffer.from(name));
}
