#pragma once

#include "sim/confidence/confidence.hpp"
#include "sim/report/page/page.hpp"
#include "sim/transformer/study.hpp"

namespace overlap {

/// A model on a machine: one step for each number of tokens.
struct ModelReport {
    Model model;  ///< of an operator list its name only
    std::string topology, device;
    std::vector<StepStudy> steps;
    std::vector<std::string> notes;  ///< what the numbers leave out, one line each
    Json what_if = Json::object();   ///< as in a run config
    Remarks remarks() const { return {notes, what_if}; }
    bool is_list() const { return steps.front().shape.tokens == 0; }
    /// Whether the best schedule of some pair needs a kernel of one's own.
    bool has_own_kernels() const;
    Confidence confidence = {};  ///< of the prices of the most frequent kind of layer
};

/// What "own kernel" behind a schedule means.
inline const std::string own_kernel_meaning =
    "own kernel: its GEMM polls or sets flags, or stores at peers; no vendor's library has one";
/// "4096 tokens"; of an operator list "step".
std::string label_of(const StepStudy& step);
/// What is computed, on which GPUs.
std::string description_of(const ModelReport& report);
/// "serial by dma/pull", and whether pairs have one of their own.
std::string serial_of(const ListStudy& list);
/// "tp 8, sequence-parallel".
std::string to_text(const Parallelism& spread);
std::string to_text(const ModelReport& report);
Json to_json(const ModelReport& report);
/// A row for each operator, pair, list and step.
std::string to_csv(const ModelReport& report);
/// The report as Markdown, a table for each list.
std::string to_markdown(const ModelReport& report);

/// Bars of the steps, operators by tokens, crossovers, confidence.
Page page_of(const ModelReport& report);

/// What is known about the prices of the most frequent kind of list, run with nothing cut. Throws UserError.
Confidence confidence_of(const StepStudy& step, const StudyOptions& options, Resolver& resolver);

}  // namespace overlap
