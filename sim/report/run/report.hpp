#pragma once

#include <string>

#include "sim/report/run/result.hpp"

namespace overlap {

/// Text for people: scenario, times, losses, utilisation, a Gantt chart of one GPU, what to try next. At most
/// 40 lines of 100 columns.
/// Notes follow, one or two lines each.
std::string to_text(const RunResult& result, const Remarks& remarks = {});
/// Numbers as sim/README.md defines them, full precision, one line without the trailing newline. `extra` fields of
/// errors never appear here.
Json to_json(const RunResult& result);
/// The result as JSON, with "notes".
Json to_json(const RunResult& result, const Remarks& remarks);
/// JSON schema of both.
Json result_schema();
/// "what if KEY = VALUE" for each change, then the notes: for pages and Markdown.
std::vector<std::string> texts_of(const Remarks& remarks);
/// Remarks as fields of a text report.
std::vector<std::string> lines_of(const Remarks& remarks);
/// Keys "what_if" and "notes" of a result that is no run, whose config has the what-if.
void add_remarks(const Remarks& remarks, Json& result);
/// "what-if KEY=VALUE: changes nothing in PLACE"
std::string no_effect_note(const std::string& key, const Json& value, const std::string& place);
/// What a run config runs: the schedule's name, or "plan FILE" or the plan's description; empty if it has neither.
std::string schedule_or_plan(const Json& config);
/// Columns of tables, and their cells in each row.
inline const std::string remark_columns = "what_if,notes";
std::string remark_cells(const Remarks& remarks);
/// Whether rows contain what only single runs have: the duration of the simulation (wall_ms), which differs between
/// runs, and the notes.
enum class CsvClock { with, without };
/// A header line and a row, without line breaks, for spreadsheets and pandas. Same values as the JSON, with
/// nested names joined by '.'. Values that `result` (to_json of a run) lacks stay empty.
std::string csv_header(CsvClock clock = CsvClock::with);
std::string csv_row(const Json& result, CsvClock clock = CsvClock::with);
/// Whether one of the columns is a field of the run config ("params.chunks").
bool csv_has_field(const std::string& field);
bool csv_has_column(const std::string& name);
/// A value as a cell: text quoted if necessary, numbers with the fewest digits that read back the same.
std::string csv_cell(const Json& value);
/// Columns of tables of many results, and their cells in a row; without `confidence` they are empty.
inline const std::string confidence_columns =
    "gemm_library,confidence.basis,confidence.makespan_error_pct,confidence.p90_error_pct";
std::string confidence_cells(const Confidence* confidence);
/// Chrome-trace JSON for Perfetto: a process for each GPU, a track for each stream, counter tracks for HBM and
/// links. With a recording also what each task did, an arrow for each edge of the task graph, and
/// the critical path: a process of its own, and "critical path" in the arguments of its slices.
/// `origin`: what made the trace, for its "otherData", beside the run's config.
std::string to_chrome_trace(const RunResult& result, const Json& origin = Json::object());

}  // namespace overlap
