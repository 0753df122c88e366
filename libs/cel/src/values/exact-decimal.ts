/** Returns a finite number as `mantissa * 2 ** exponent`, both exact. */
function split(value: number): { readonly mantissa: bigint; readonly exponent: number } {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, Math.abs(value));
  const bits = view.getBigUint64(0);
  const exponent = Number(bits >> 52n);
  const fraction = bits & 0xf_ffff_ffff_ffffn;
  return exponent === 0
    ? { mantissa: fraction, exponent: -1074 }
    : { mantissa: fraction | (1n << 52n), exponent: exponent - 1075 };
}

/** Divides the size of a number by a power of ten, and rounds to the nearest integer, ties to even. */
function roundTo(value: number, power: number): bigint {
  const { mantissa, exponent } = split(value);
  const numerator =
    mantissa * (exponent > 0 ? 1n << BigInt(exponent) : 1n) * 10n ** BigInt(Math.max(0, -power));
  const denominator =
    (exponent < 0 ? 1n << BigInt(-exponent) : 1n) * 10n ** BigInt(Math.max(0, power));
  const quotient = numerator / denominator;
  const rest = 2n * (numerator % denominator);
  const isUp = rest > denominator || (rest === denominator && quotient % 2n === 1n);
  return isUp ? quotient + 1n : quotient;
}

const signOf = (value: number) => (value < 0 || Object.is(value, -0) ? "-" : "");

function withPoint(digits: string, places: number): string {
  if (places === 0) return digits;
  return `${digits.slice(0, -places)}.${digits.slice(-places)}`;
}

/** Formats a finite number as Go's `%.nf`. JavaScript has at most 100 places, and rounds ties up. */
export function formatFixed(value: number, places: number): string {
  const digits = roundTo(value, -places).toString();
  return signOf(value) + withPoint(digits.padStart(places + 1, "0"), places);
}

/** Returns the digits and the exponent of a finite number as in Go's `%.ne`. */
export function formatScientific(
  value: number,
  places: number,
): { readonly digits: string; readonly exponent: number } {
  let exponent = Number(value.toExponential().split("e")[1]);
  let digits = roundTo(value, exponent - places).toString();
  // The shortest digits of a number and its exact ones may have different exponents.
  while (value !== 0 && digits.length !== places + 1) {
    exponent += Math.sign(digits.length - places - 1);
    digits = roundTo(value, exponent - places).toString();
  }
  return {
    digits: signOf(value) + withPoint(digits.padStart(places + 1, "0"), places),
    exponent,
  };
}
