import { findCrds, type CrdSource } from "./find-crds.ts";
import { makeTypeFile } from "./make-type-file.ts";
import { makeZodFile } from "./make-zod-file.ts";
import { readKinds, type KindSelection } from "./read-kinds.ts";

export interface TypesFileOptions extends CrdSource, KindSelection {
  /** Whether the file declares zod schemas. */
  readonly zod?: boolean;
  /** The command that the file names as its origin. */
  readonly command: string;
}

/** Returns the text of a file with the selected kinds, and their number. */
export async function typesFile(
  options: TypesFileOptions,
): Promise<{ text: string; count: number }> {
  const kinds = readKinds(await findCrds(options), options);
  const make = options.zod === true ? makeZodFile : makeTypeFile;
  return { text: make(kinds, options.command), count: kinds.length };
}
