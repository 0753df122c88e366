/**
 * `/openapi/v2`: a document without kinds. kubectl reads it about a kind that is not in `/openapi/v3`, before it reports that
 * there is no such kind; older versions then skip their own validation.
 */
export function openApiV2(version: string, isBinary: boolean): Buffer {
  const title = "Kubernetes";
  if (!isBinary) {
    const info = { title, version };
    return Buffer.from(JSON.stringify({ swagger: "2.0", info, paths: {}, definitions: {} }));
  }
  const info = Buffer.concat([field(1, title), field(2, version)]);
  return Buffer.concat([field(1, "2.0"), field(2, info), field(8, ""), field(9, "")]);
}

/** A protobuf field of bytes, shorter than 128. */
function field(number: number, value: string | Buffer): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([Buffer.from([(number << 3) | 2, bytes.length]), bytes]);
}
