/** A message that protobuf cannot decode. */
export class ProtobufError extends Error {}

/** One field of a message: a varint or a fixed number, or the bytes of a text, a message or packed numbers. */
export interface WireField {
  readonly number: number;
  readonly value: bigint | Uint8Array;
}

/**
 * Reads the fields of a message in their order (https://protobuf.dev/programming-guides/encoding/).
 * @throws ProtobufError for bytes that are no message
 */
export function readFields(bytes: Uint8Array): WireField[] {
  const fields: WireField[] = [];
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = 0;
  const take = (length: number): number => {
    const start = at;
    at += length;
    if (at > bytes.length) throw new ProtobufError("unexpected EOF");
    return start;
  };
  const varint = (): bigint => {
    const read = readVarint(bytes, at);
    at = read.end;
    return read.value;
  };
  while (at < bytes.length) {
    const tag = Number(varint());
    const number = tag >>> 3;
    switch (tag & 7) {
      case 0:
        fields.push({ number, value: varint() });
        break;
      case 1:
        fields.push({ number, value: view.getBigUint64(take(8), true) });
        break;
      case 2: {
        const length = Number(varint());
        const start = take(length);
        fields.push({ number, value: bytes.subarray(start, start + length) });
        break;
      }
      case 5:
        fields.push({ number, value: BigInt(view.getUint32(take(4), true)) });
        break;
      default:
        throw new ProtobufError(`wire type ${tag & 7} of field ${number} is not supported`);
    }
  }
  return fields;
}

/** Reads packed varints. */
export function readPacked(bytes: Uint8Array): bigint[] {
  const values: bigint[] = [];
  for (let at = 0; at < bytes.length;) {
    const { value, end } = readVarint(bytes, at);
    values.push(value);
    at = end;
  }
  return values;
}

function readVarint(
  bytes: Uint8Array,
  start: number,
): { readonly value: bigint; readonly end: number } {
  let value = 0n;
  for (let at = start, shift = 0n; shift < 70n; at++, shift += 7n) {
    const byte = bytes[at];
    if (byte === undefined) throw new ProtobufError("unexpected EOF");
    value |= BigInt(byte & 0x7f) << shift;
    if (byte < 0x80) return { value, end: at + 1 };
  }
  throw new ProtobufError("integer overflow");
}
