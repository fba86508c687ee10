#pragma once

#include "sim/transformer/study.hpp"

namespace overlap {

/// A model on a machine: one step for each number of tokens.
struct ModelReport {
    Model model;
    std::string topology, device;
    std::vector<StepStudy> steps;
    std::vector<std::string> notes;  ///< what the numbers leave out, one line each
};

/// "tp 8, sequence-parallel".
std::string to_text(const Parallelism& spread);
std::string to_text(const ModelReport& report);
Json to_json(const ModelReport& report);
/// A row for each operator, pair, list and step.
std::string to_csv(const ModelReport& report);
/// The same as Markdown, a table for each list.
std::string to_markdown(const ModelReport& report);

}  // namespace overlap
