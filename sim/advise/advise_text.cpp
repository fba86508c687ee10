#include <algorithm>

#include "sim/advise/advise.hpp"
#include "sim/report/run/report.hpp"
#include "sim/report/text_format.hpp"

namespace overlap {
namespace {

constexpr std::size_t name_columns = 28;
const std::string own_kernel_mark = "own kernel";

std::string host_text(const std::string& name) {
    return name.empty() ? "any: the order of enqueueing changes nothing here" : name;
}

/// The rendering of one advice; `scale` is that of its slowest candidate.
class AdviceText {
public:
    explicit AdviceText(const SimulatedAdvice& advice)
        : advice_(advice), scale_(advice.ranked.back().makespan), best_(advice.ranked.front().makespan) {}

    std::string head() const {
        std::string text;
        for (const std::string& line : field("", advice_.scenario, SIZE_MAX)) text += line + "\n";
        text += std::to_string(advice_.ranked.size()) +
                " candidates simulated, the fastest of each choice: schedule/chunks/agent/transfer\n";
        text += left("host", label_columns) + host_text(advice_.host) + ", in every row\n";
        for (const std::string& line : lines_of(advice_.remarks)) text += line + "\n";
        for (const std::string& line : lines_of(advice_.best.front().confidence, SIZE_MAX))
            text += line + "\n";
        return text + baseline();
    }

    std::string ranking() const {
        std::string text;
        bool marked = false;
        for (std::size_t i = 0; i < advice_.choices.size(); ++i) {
            const RankedCandidate& one = advice_.choices[i];
            marked = marked || one.candidate.own_kernel();
            text += right(std::to_string(i + 1), 3) + "  " + left(name(one), 34) + time(one, 10) + "  +" +
                    percent_text(one.makespan / best_ - 1) + "   speed-up " +
                    fixed(advice_.baseline.speedup(one.makespan), 3) + mark(one) + "\n";
        }
        if (marked)
            text += own_kernel_mark +
                    ": its GEMM polls or sets flags, or stores at peers; no vendor's library has one\n";
        return text;
    }

    std::string gains() const {
        std::string text = left("the best against", name_columns - 1) + "makespan\n";
        text += gain("  fastest serial", advice_.baseline.serial);
        text += gain("  best shard-level", advice_.shard_level);
        if (advice_.ranked.front().candidate.own_kernel())
            text += gain("  best with library kernels", advice_.by_library_kernels);
        return text;
    }

    std::string next_choice() const {
        if (!advice_.next_choice) return "";
        const NextChoice& next = *advice_.next_choice;
        return "\nnext choice  " + name(next.choice) + "  +" + percent_text(next.margin) + mark(next.choice) +
               sureness(next.margin, advice_.best.front().confidence) + "\n  decided by " + next.decided_by +
               ": " + scale_.format(next.difference) + " " + scale_.unit() + " less of it\n";
    }

    std::string steady_state() const {
        const auto& one = advice_.in_steady_state;
        return one ? "\nin a loop, once clocks have settled (--steady), another choice is the best\n  " +
                         left(name(one->choice), name_columns - 2) + time(one->choice, 9) + "   " +
                         percent_text(one->gain) + " faster than the best above\n"
                   : "";
    }

    std::string presets() const {
        if (advice_.presets.empty()) return "";
        std::string text = "\nas libraries run them (sim explain NAME)\n";
        for (const PresetTime& one : advice_.presets)
            text += left("  " + one.name, name_columns) + right(scale_.format(one.makespan), 9) + " " +
                    scale_.unit() + "   speed-up " + fixed(advice_.baseline.speedup(one.makespan), 3) +
                    (one.own_kernel ? "   " + own_kernel_mark : "") + "\n";
        return text;
    }

private:
    std::string name(const RankedCandidate& one) const { return one.candidate.name(advice_.vendors_library); }
    std::string time(const RankedCandidate& one, std::size_t columns) const {
        return right(scale_.format(one.makespan), columns) + " " + scale_.unit();
    }
    static std::string mark(const RankedCandidate& one) {
        return one.candidate.own_kernel() ? "   " + own_kernel_mark : "";
    }

    std::string baseline() const {
        const AdviceBaseline& baseline = advice_.baseline;
        return "speed-up over " + name(baseline.serial) + ", " + time(baseline.serial, 0) +
               ": the fastest execution without overlap" +
               (baseline.allowed ? "" : " (--agent leaves it out)") + "\n" +
               (baseline.with_library
                    ? ""
                    : "  by copies only: no measurement of the vendor's library serves this workload\n");
    }

    std::string gain(const std::string& of, const std::optional<RankedCandidate>& other) const {
        if (!other) return "";
        return left(of, name_columns) + time(*other, 9) + "   " + fixed(other->makespan / best_, 3) +
               " x   " + name(*other) + "\n";
    }

    const SimulatedAdvice& advice_;
    TimeScale scale_;
    Seconds best_;
};

}  // namespace

std::optional<bool> too_close_to_call(double margin, const Confidence& confidence) {
    const std::optional<double> error = confidence.makespan_error();
    return error ? std::optional(margin < *error) : std::nullopt;
}

std::string sureness(double margin, const Confidence& confidence) {
    const std::optional<bool> too_close = too_close_to_call(margin, confidence);
    if (!too_close) return "   (whether errors exceed this is not known)";
    return *too_close ? "   too close to call" : "";
}

std::string to_text(const SimulatedAdvice& advice) {
    const AdviceText text(advice);
    return text.head() + "\n" + text.ranking() + "\n" + text.gains() + text.next_choice() +
           text.steady_state() + text.presets();
}

}  // namespace overlap
