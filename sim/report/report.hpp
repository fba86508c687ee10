#pragma once

#include <string>

#include "sim/report/result.hpp"

namespace overlap {

/// For people: scenario, times, losses, utilisation, a Gantt of one GPU, what to try next. At most 40 lines
/// of 100 columns.
std::string to_text(const RunResult& result);
/// ARCHITECTURE section 7, full precision, one line without the trailing newline. `extra` fields of errors
/// never appear here.
Json to_json(const RunResult& result);
/// Header line and row, without line breaks, for spreadsheets and pandas; same values as the JSON, nested
/// names joined by '.'.
std::string csv_header();
std::string csv_row(const RunResult& result);
/// Chrome-trace JSON that Perfetto opens: a process a GPU, a track a stream, counter tracks for HBM and
/// links.
std::string to_chrome_trace(const RunResult& result);

}  // namespace overlap
