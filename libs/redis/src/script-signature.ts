/**
 * The encoding of an argument. `text` is unchanged, also for numbers that Lua only passes on or compares as text; `number` is
 * converted in Lua; `flag` is a boolean on both sides.
 */
export type ArgumentKind = "text" | "number" | "flag";

export type ArgumentKinds = Readonly<Record<string, ArgumentKind>>;

/**
 * The keys and arguments of a script. Each name is a local in Lua and a field of the call; their order here is their order
 * on the wire.
 */
export interface ScriptSignature {
  readonly name: string;
  readonly keys?: readonly string[];
  readonly args?: ArgumentKinds;
  /** A list of any length after them. In Lua, `each` is a table with one table per item. */
  readonly each?: { readonly keys?: readonly string[]; readonly args?: ArgumentKinds };
}

type Argument<Kind> = Kind extends "number"
  ? number
  : Kind extends "flag"
    ? boolean
    : string | number;

type Keys<Part> = Part extends { readonly keys: readonly (infer Name extends string)[] }
  ? { readonly [Each in Name]: string }
  : unknown;

type Arguments<Part> = Part extends { readonly args: infer Kinds }
  ? { readonly [Name in keyof Kinds]: Argument<Kinds[Name]> }
  : unknown;

/** The values of a call: one for each declared name, and no others. */
export type ScriptCall<Signature extends ScriptSignature> = (Signature extends {
  readonly keys: readonly string[];
}
  ? { readonly keys: Keys<Signature> }
  : unknown) &
  (Signature extends { readonly args: ArgumentKinds }
    ? { readonly args: Arguments<Signature> }
    : unknown) &
  (Signature extends { readonly each: infer Item }
    ? { readonly each: readonly (Keys<Item> & Arguments<Item>)[] }
    : unknown);
