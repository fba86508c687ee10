// Which tasks a plan has, rank by rank; no GPU code.

#include "models/calibration/hip/replay/plan_ranks.hpp"

#include <charconv>

#include "models/calibration/hip/case_list.hpp"

namespace overlap::hip {
namespace {

[[noreturn]] void refuse(const JsonValue& value, const std::string& what) {
    throw UserError(value.where() + ": " + what);
}

/// "+1" or "-1" as a number.
bool is_offset(const std::string& text, int& number) {
    if (text.size() < 2 || (text[0] != '+' && text[0] != '-')) return false;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + (text[0] == '+' ? 1 : 0), end, number);
    return error == std::errc() && stop == end;
}

}  // namespace

const JsonValue* PlanLine::find(std::string_view key) const {
    const JsonValue* found = json_.find(key);
    if (found == nullptr || !found->is_object()) return found;
    const auto& values = found->at("ranks").items();
    if (values.size() != static_cast<std::size_t>(gpus_))
        refuse(*found, "expected ranks: " + std::to_string(gpus_) + " values");
    return &values[static_cast<std::size_t>(rank_)];
}

const JsonValue& PlanLine::at(std::string_view key) const {
    if (const JsonValue* found = find(key)) return *found;
    return json_.at(key);
}

std::int64_t PlanLine::whole(std::string_view key, std::int64_t otherwise) const {
    const JsonValue* found = find(key);
    return found == nullptr ? otherwise : found->whole();
}

int PlanLine::rank_of(const JsonValue& value) const {
    int offset = 0;
    if (value.is_text() && is_offset(value.text(), offset)) return rank_after(offset);
    const std::int64_t rank = value.whole();
    if (rank < 0 || rank >= gpus_) refuse(value, "is no rank of " + std::to_string(gpus_));
    return static_cast<int>(rank);
}

std::string PlanLine::stream() const {
    const std::string& name = at("stream").text();
    const std::string transfer = "transfer ";
    int offset = 0;
    if (name.rfind(transfer, 0) == 0 && is_offset(name.substr(transfer.size()), offset))
        return transfer + std::to_string(rank_after(offset));
    return name;
}

std::string PlanLine::name() const {
    if (const JsonValue* given = find("name")) return given->text();
    std::string text = at("kind").text();
    if (text == "copy") text += " " + std::to_string(rank_at("src")) + ">" + std::to_string(rank_at("dst"));
    const JsonValue* shard = find("shard");
    if (shard != nullptr && (shard->is_text() || shard->whole() >= 0))
        text += " s" + std::to_string(rank_of(*shard));
    if (const std::int64_t chunk = whole("chunk", -1); chunk >= 0) text += " c" + std::to_string(chunk);
    return text;
}

PlanLines::PlanLines(const JsonValue& tasks, int gpus) : gpus_(gpus) {
    for (const JsonValue& entry : tasks.items()) {
        const JsonValue* group = entry.find("each_rank");
        if (group == nullptr) {
            lines_.push_back({tasks_.size(), 0});
            add(entry);
            const std::int64_t rank = entry.at("gpu").whole();
            if (rank < 0 || rank >= gpus)
                refuse(entry.at("gpu"),
                       "is " + std::to_string(rank) + ", allowed: 0 to " + std::to_string(gpus - 1));
            tasks_.emplace_back(entry, static_cast<int>(rank), gpus);
            continue;
        }
        const std::vector<JsonValue>& lines = group->items();
        for (std::size_t i = 0; i < lines.size(); ++i) {
            lines_.push_back({tasks_.size() + i, lines.size()});
            add(lines[i]);
        }
        for (int rank = 0; rank < gpus; ++rank)
            for (const JsonValue& line : lines) tasks_.emplace_back(line, rank, gpus);
    }
    if (tasks_.empty()) refuse(tasks, "is empty");
}

void PlanLines::add(const JsonValue& line) {
    const JsonValue* name = line.find("name");
    if (name != nullptr) named_[name->text()] = lines_.size() - 1;
    if (const JsonValue* id = line.find("id");
        id != nullptr && id->whole() != static_cast<std::int64_t>(lines_.size()) - 1)
        refuse(*id, "is " + std::to_string(id->whole()) + ", allowed: " + std::to_string(lines_.size() - 1));
}

const PlanLines::Line& PlanLines::line_called(const JsonValue& value) const {
    if (value.is_text()) {
        const auto found = named_.find(value.text());
        if (found == named_.end()) refuse(value, "is '" + value.text() + "', which no task is called");
        return lines_[found->second];
    }
    const std::int64_t line = value.whole();
    if (line < 0 || line >= static_cast<std::int64_t>(lines_.size()))
        refuse(value, "is " + std::to_string(line) + ", allowed: 0 to " + std::to_string(lines_.size() - 1));
    return lines_[static_cast<std::size_t>(line)];
}

std::vector<std::size_t> PlanLines::waits_of(std::size_t task) const {
    const PlanLine& waiting = tasks_[task];
    const JsonValue* after = waiting.find("after");
    std::vector<std::size_t> waits;
    if (after == nullptr) return waits;
    for (const JsonValue& item : after->items()) {
        if (item.is_object()) refuse(item, "can't be run: waits for a share of another task");
        const bool names_rank = item.is_array();
        if (names_rank && item.items().size() != 2) refuse(item, "expected [task, rank]");
        const Line& line = line_called(names_rank ? item.items()[0] : item);
        const int rank = names_rank ? waiting.rank_of(item.items()[1]) : waiting.rank();
        waits.push_back(line.first + static_cast<std::size_t>(rank) * line.step);
        if (waits.back() >= task) refuse(item, "can't be run: waits for a task that is enqueued later");
    }
    return waits;
}

}  // namespace overlap::hip
