import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { query, setQuery } from "../state/router.ts";
import { SavedViews } from "./saved-views.tsx";

const PAUSE_MS = 250;

export interface FilterProps {
  /** Query parameter. */
  readonly name: string;
  readonly label: string;
  /** Options of a select. Default: a text field. */
  readonly choices?: readonly string[];
  readonly placeholder?: string;
}

/** The filters of a view, followed by its saved views. */
export function Filters({ children }: { readonly children: ComponentChildren }) {
  return (
    <>
      <div class="filters" role="group" aria-label="Filters">
        {children}
      </div>
      <SavedViews />
    </>
  );
}

/** A filter. Its value is a query parameter; a change returns to the first page. */
export function Filter({ name, label, choices, placeholder = "any" }: FilterProps) {
  const set = (value: string) => setQuery({ [name]: value, cursor: undefined });
  const value = query.value.get(name) ?? "";
  if (choices === undefined) {
    return <TextFilter label={label} value={value} placeholder={placeholder} set={set} />;
  }
  return (
    <label>
      {label}
      <select value={value} onChange={({ currentTarget }) => set(currentTarget.value)}>
        <option value="">any</option>
        {choices.map((choice) => (
          <option key={choice} value={choice}>
            {choice}
          </option>
        ))}
        {value === "" || choices.includes(value) ? null : <option value={value}>{value}</option>}
      </select>
    </label>
  );
}

function TextFilter({
  label,
  value,
  placeholder,
  set,
}: {
  readonly label: string;
  readonly value: string;
  readonly placeholder: string;
  readonly set: (value: string) => void;
}) {
  const [text, setText] = useState(value);
  // Follows changes of the address from elsewhere.
  useEffect(() => setText(value), [value]);
  useEffect(() => {
    if (text === value) return;
    const timer = window.setTimeout(() => set(text.trim()), PAUSE_MS);
    return () => window.clearTimeout(timer);
  }, [text]);
  return (
    <label>
      {label}
      <input
        value={text}
        placeholder={placeholder}
        spellcheck={false}
        autoComplete="off"
        onInput={({ currentTarget }) => setText(currentTarget.value)}
      />
    </label>
  );
}

/** Reads the values of these filters from the address. */
export function filtersOf(names: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = query.value.get(name) ?? "";
      return value === "" ? [] : [[name, value]];
    }),
  );
}
