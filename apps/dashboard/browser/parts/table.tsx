import type { ComponentChildren } from "preact";

/** A column: header, label on narrow windows, and cells come from one definition. */
export interface Column<Row> {
  readonly title: string;
  readonly cell: (row: Row) => ComponentChildren;
  /** Classes of the cells. `right` also aligns the header. */
  readonly look?: string;
  /** Hides the title, but not from screen readers. */
  readonly isTitleHidden?: boolean;
}

export interface TableProps<Row> {
  /** The first column is the header of its row. */
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string | number;
  /** For screen readers. */
  readonly caption?: string;
  /** Classes of the table. Default: cells are stacked on narrow windows. */
  readonly look?: string;
}

export function Table<Row>({ columns, rows, keyOf, caption, look = "stack" }: TableProps<Row>) {
  const [head, ...others] = columns;
  return (
    <table class={look}>
      {caption === undefined ? null : <caption class="hidden">{caption}</caption>}
      <thead>
        <tr>
          {columns.map((column) => (
            <ColumnHead key={column.title} column={column} />
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={keyOf(row)}>
            <th scope="row" class={head?.look}>
              {head?.cell(row)}
            </th>
            {others.map(({ title, cell, look: cellLook, isTitleHidden = false }) => (
              <td key={title} class={cellLook} data-label={isTitleHidden ? undefined : title}>
                {cell(row)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function ColumnHead<Row>({ column }: { readonly column: Column<Row> }) {
  const { title, look = "", isTitleHidden = false } = column;
  return (
    <th scope="col" class={headLook(look)}>
      {isTitleHidden ? <span class="hidden">{title}</span> : title}
    </th>
  );
}

/** Alignment and priority of a column apply to its header, too. */
function headLook(look: string): string | undefined {
  const shared = look.split(" ").filter((name) => name === "right" || name === "secondary");
  return shared.length === 0 ? undefined : shared.join(" ");
}
