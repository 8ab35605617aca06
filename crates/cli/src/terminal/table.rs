use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};

/// Returns a table without borders, with columns two spaces apart. Format it with
/// [`trim_fmt`](Table::trim_fmt), which removes trailing spaces.
pub(crate) fn plain_table<const N: usize>(
    alignments: [CellAlignment; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> Table {
    let mut table = Table::new();
    table.load_style(NOTHING).add_rows(rows);
    for (column, alignment) in table.column_iter_mut().zip(alignments) {
        column.set_padding((0, 2)).set_cell_alignment(alignment);
    }
    table
}
