#pragma once

#include <string>

#include "sim/report/run/remarks.hpp"
#include "sim/report/run/result.hpp"

namespace overlap {

/// For people: scenario, times, losses, utilisation, a Gantt of one GPU, what to try next. At most 40 lines
/// of 100 columns.
/// Notes come beyond that, a line each, or two.
std::string to_text(const RunResult& result, const Remarks& remarks = {});
/// Numbers as sim/README.md defines them, full precision, one line without the trailing newline. `extra` fields of errors
/// never appear here.
Json to_json(const RunResult& result);
/// The same with "gemm_library" (null where it is not known) and "notes".
Json to_json(const RunResult& result, const Remarks& remarks);
/// Whether a row says how long the simulation took (wall_ms), which no two runs agree on.
enum class CsvClock { with, without };
/// Header line and row, without line breaks, for spreadsheets and pandas; same values as the JSON, nested
/// names joined by '.'. What `result` (to_json of a run) does not have stays empty.
std::string csv_header(CsvClock clock = CsvClock::with);
std::string csv_row(const Json& result, CsvClock clock = CsvClock::with);
/// A value as a cell: text quoted where it must be, numbers in the fewest digits that read back the same.
std::string csv_cell(const Json& value);
/// Chrome-trace JSON that Perfetto opens: a process a GPU, a track a stream, counter tracks for HBM and
/// links.
std::string to_chrome_trace(const RunResult& result);

}  // namespace overlap
