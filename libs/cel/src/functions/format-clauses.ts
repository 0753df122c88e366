/** One clause of a format, for example `%.2f`. */
interface Clause {
  /** Empty if the format ends with the percent sign. */
  readonly letter: string;
  readonly precision: number | undefined;
  /** Why the clause is invalid, with the text of cel-go. */
  readonly error: string | undefined;
}

interface ClauseTypes {
  /** Names of the types that the clause accepts. */
  readonly types: ReadonlySet<string>;
  /** Error for other types, without the name of the type. */
  readonly refusal: string;
}

const accepting = (types: string, refusal: string): ClauseTypes => ({
  types: new Set(types.split(" ")),
  refusal,
});

const HEX = accepting(
  "int uint string bytes",
  "only integers, byte buffers, and strings can be formatted as hex",
);
const STRING_TYPES =
  "list map int uint double bool string google.protobuf.Timestamp bytes google.protobuf.Duration type null_type";
/** The types that each clause accepts. */
const CLAUSES: Readonly<Record<string, ClauseTypes>> = {
  s: accepting(
    STRING_TYPES,
    "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps",
  ),
  d: accepting("int uint", "decimal clause can only be used on integers"),
  // Of strings, only the names of special numbers are accepted, when the rule runs.
  f: accepting("double string", "fixed-point clause can only be used on doubles"),
  e: accepting("double string", "scientific clause can only be used on doubles"),
  b: accepting("int uint bool", "only integers and bools can be formatted as binary"),
  x: HEX,
  X: HEX,
  o: accepting("int uint", "octal clause can only be used on integers"),
};

const MOST = 2n ** 63n - 1n;

/** Returns why a clause cannot format a value of a type, or undefined if it can. */
export function refusalOf(letter: string, typeName: string, always = false): string | undefined {
  const clause = CLAUSES[letter];
  if (clause === undefined || (!always && clause.types.has(typeName))) return undefined;
  return `error during formatting: ${clause.refusal}, was given ${typeName}`;
}

/** Splits a format into its texts and clauses, which cel-go reads in this order. */
export function* readFormat(format: string): Generator<Clause | string> {
  let at = 0;
  for (;;) {
    const percent = format.indexOf("%", at);
    if (percent === -1) break;
    if (percent > at) yield format.slice(at, percent);
    if (format[percent + 1] === "%") {
      yield "%";
      at = percent + 2;
      continue;
    }
    const [, point, digits = ""] = /^(\.)?([0-9]*)/.exec(format.slice(percent + 1)) ?? [];
    const length = point === undefined ? 0 : 1 + digits.length;
    const letter = format[percent + 1 + length] ?? "";
    yield point === undefined ? plain(letter) : withPrecision(letter, digits);
    at = percent + 2 + length;
  }
  if (at < format.length) yield format.slice(at);
}

function plain(letter: string, precision?: number): Clause {
  const isKnown = letter === "" || CLAUSES[letter] !== undefined;
  // cel-go reads one byte, as a code point.
  const shown = isKnown ? "" : String.fromCharCode(Buffer.from(letter)[0] ?? 0);
  const error = `could not parse formatting clause: unrecognized formatting clause "${shown}"`;
  return { letter, precision, error: isKnown ? undefined : error };
}

function withPrecision(letter: string, digits: string): Clause {
  const number = `error while converting precision to integer: strconv.Atoi: parsing "${digits}"`;
  let error: string | undefined;
  if (letter === "") error = "could not find end of precision specifier";
  else if (digits === "") error = `${number}: invalid syntax`;
  else if (BigInt(digits) > MOST) error = `${number}: value out of range`;
  if (error === undefined) return plain(letter, Number(digits));
  const message = `could not parse formatting clause: error while parsing precision: ${error}`;
  // The letter is not read any more.
  return { letter: letter === "" ? "?" : letter, precision: undefined, error: message };
}
