import type { Controller } from "../define/define-controller.ts";
import type { ControllerSource } from "../define/source.ts";

/** The place of a source in the options of its controller, for example `watches[1]`. */
export function placeOf(
  source: ControllerSource,
  { sources }: Pick<Controller, "sources">,
): string {
  const { option } = source;
  if (option === "for") return option;
  return `${option}[${sources.filter((each) => each.option === option).indexOf(source)}]`;
}
