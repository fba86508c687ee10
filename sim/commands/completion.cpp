#include <map>
#include <memory>

#include "sim/commands/commands.hpp"
#include "sim/core/ranges.hpp"
#include "sim/run/config_folder.hpp"

namespace overlap {
namespace {

using Words = std::vector<std::string>;

/// Each shell asks `sim complete` with the words of the line, the last of them unfinished: it knows the flags and the
/// files. Where it answers nothing the shell completes names of files.
constexpr char bash_script[] = R"(# bash completion of sim: source <(sim completion bash)
_sim() {
    local IFS=$'\n'
    COMPREPLY=($("${COMP_WORDS[0]}" complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _sim sim
)";
constexpr char zsh_script[] = R"(#compdef sim
# zsh completion of sim: source <(sim completion zsh), or a file _sim in a folder of $fpath
_sim() {
    local -a answers
    answers=("${(@f)$("${words[1]}" complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -n ${answers[1]} ]]; then compadd -- "${answers[@]}"; else _files; fi
}
if [[ ${funcstack[1]} == _sim ]]; then _sim "$@"; else compdef _sim sim; fi
)";
constexpr char fish_script[] = R"(# fish completion of sim: sim completion fish | source
complete -c sim -a '(set -l words (commandline -opc) (commandline -ct); sim complete -- $words[2..-1] 2>/dev/null)'
)";
const std::map<std::string, const char*> scripts{
    {"bash", bash_script}, {"fish", fish_script}, {"zsh", zsh_script}};

Words files(const char* kind) {
    return ConfigFolder::standard().names(kind);
}

Words all_schedules() {
    Words names = listed_names("schedules");
    append(names, listed_names("schedules in use"));
    return names;
}

/// Flags, and arguments of a command, whose values have names. Flags mean the same in every command.
const std::map<std::string, Words (*)()> named_values{
    {"--topology", [] { return files("topologies"); }},
    {"--workload", [] { return files("workloads"); }},
    {"--device", [] { return files("devices"); }},
    {"--host", [] { return files("hosts"); }},
    {"--schedule", all_schedules},
    {"--schedules", all_schedules},
    {"--engine", [] { return listed_names("engines"); }},
    {"--cost-model", [] { return listed_names("cost models"); }},
    {"explain name", [] { return listed_names(""); }},
    {"list kind", listed_kinds},
    {"model config", [] { return files("models"); }},
    {"reproduce system", [] { return ConfigFolder::standard().published_systems(); }},
    {"sweep file", [] { return files("sweeps"); }},
};

/// The values that the option's check allows: CLI::IsMember describes itself as {one,other}.
Words checked_values(const CLI::Option& option) {
    const std::string type = option.get_type_name();
    const std::size_t open = type.rfind('{'), close = type.rfind('}');
    if (open == std::string::npos || close == std::string::npos || close < open) return {};
    return CLI::detail::split(type.substr(open + 1, close - open - 1), ',');
}

Words values_of(const CLI::App& app, const CLI::Option& option) {
    if (const Words checked = checked_values(option); !checked.empty()) return checked;
    if (app.get_name() == "help") return command_names(*app.get_parent());
    const std::string name = option.get_single_name();
    const auto* values =
        value_at(named_values, option.get_positional() ? app.get_name() + " " + name : "--" + name);
    return values == nullptr ? Words() : (*values)();
}

/// What may stand at the place of the last word.
Words allowed(const CLI::App& root, const Words& words) {
    const CLI::App* app = &root;
    const CLI::Option* flag = nullptr;  // whose value comes next
    std::size_t arguments = 0;
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
        const std::string& word = words[i];
        if (word == "=") continue;  // bash splits --flag=value in three
        const CLI::App* command = app == &root && flag == nullptr ? command_of(root, word) : nullptr;
        if (command != nullptr)
            app = command;
        else if (word.starts_with("-"))
            flag = app->get_option_no_throw(word);
        else if (flag == nullptr)
            ++arguments;
        const bool takes_value = flag != nullptr && flag->get_items_expected_max() > 0;
        if (!word.starts_with("-") || !takes_value) flag = nullptr;
    }
    if (flag != nullptr) return values_of(*app, *flag);
    if (words.back().starts_with("-")) return flag_names(*app);
    if (app == &root) return command_names(root);
    for (const CLI::Option* option :
         app->get_options([](const CLI::Option* one) { return one->get_positional(); }))
        if (arguments-- == 0 || option->get_items_expected_max() > 1) return values_of(*app, *option);
    return {};
}

void complete(const CLI::App& root, const Words& words) {
    const std::string& last = words.back();
    // Only the last value of a list a,b is unfinished.
    const std::string before = last.substr(0, last.rfind(',') == std::string::npos ? 0 : last.rfind(',') + 1);
    std::string text;
    for (const std::string& one : allowed(root, words))
        if ((before + one).starts_with(last)) text += before + one + "\n";
    print(text);
}

}  // namespace

Words flag_names(const CLI::App& app) {
    Words names;
    for (const CLI::Option* option : app.get_options())
        for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    return names;
}

const CLI::App* command_of(const CLI::App& app, const std::string& name) {
    const auto commands = app.get_subcommands({});
    const auto found = std::ranges::find(commands, name, [](const CLI::App* one) { return one->get_name(); });
    return found == commands.end() ? nullptr : *found;
}

Words command_names(const CLI::App& app) {
    Words names;
    for (const CLI::App* command :
         app.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); }))
        names.push_back(command->get_name());
    return names;
}

void add_completion_commands(CLI::App& app) {
    CLI::App* script = app.add_subcommand("completion", "Print the completion script of a shell");
    auto shell = std::make_shared<std::string>();
    script->add_option("shell", *shell, "bash, zsh or fish")
        ->required()
        ->check(CLI::IsMember({"bash", "zsh", "fish"}));
    script->callback([shell] { print(scripts.at(*shell)); });

    CLI::App* completing = app.add_subcommand("complete", "What the last word may be")->group("");
    auto words = std::make_shared<Words>();
    completing->add_option("words", *words)->required();
    completing->callback([&app, words] { complete(app, *words); });
}

}  // namespace overlap
