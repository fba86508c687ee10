#include "sim/commands/model_flags.hpp"

#include "sim/commands/scenario_flags.hpp"
#include "sim/core/ranges.hpp"
#include "sim/transformer/server.hpp"

namespace overlap {
namespace {

/// An option that takes one of an enumeration's names. `choice` is a member of `flags`.
template <class Choice, class Names>
CLI::Option* add_choice(CLI::App& command, const std::string& name, const Names& names,
                        const std::shared_ptr<ModelFlags>& flags, Choice& choice, const std::string& help) {
    const auto take = [flags, &choice, &names](const std::string& given) {
        choice = static_cast<Choice>(place_of(names, given));
    };
    return command.add_option_function<std::string>(name, take, help)
        ->check(CLI::IsMember(std::vector<std::string>(names.begin(), names.end())));
}

}  // namespace

std::shared_ptr<ModelFlags> add_model_flags(CLI::App& app) {
    CLI::App* command = &app;
    auto flags = std::make_shared<ModelFlags>();
    command
        ->add_option(
            "config", flags->config,
            "config.json of a Hugging Face model, or a name in configs/models; or an operator list, such as "
            "dlrm_128: a workload file, or a name in configs/workloads")
        ->required();
    add_topology_flags(*command, flags->topology)->required();
    command
        ->add_option("--tokens", flags->tokens, "Tokens of a step on all GPUs together; several: 4096,16384")
        ->delimiter(',')
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{100'000'000}));
    std::vector<std::string> phases(phase_names.begin(), phase_names.end());
    phases.emplace_back("serve");
    command
        ->add_option("--phase", flags->phase,
                     "forward, training, prefill, decode; serve: a steady load; default forward")
        ->check(CLI::IsMember(phases));
    const auto add_load = [&](const char* name, auto member, const char* meaning) {
        command
            ->add_option_function<std::int64_t>(
                name,
                [flags, member](const std::int64_t& value) {
                    if (!flags->load) flags->load.emplace();
                    *flags->load.*member = value;
                },
                std::string("Serve: ") + meaning)
            ->check(CLI::Range(std::int64_t{1}, std::int64_t{10'000'000}));
    };
    add_load("--isl", &ServeLoad::input, "tokens of a prompt; default 1024");
    add_load("--osl", &ServeLoad::output, "tokens of an answer; default 1024");
    add_load("--concurrency", &ServeLoad::concurrency, "sequences at a time; default 1");
    command
        ->add_option(
            "--server", flags->server,
            "Serve: the engine, vllm, sglang or tensorrt_llm, whose kernels are taken where the device has "
            "fits of them; default: of any library")
        ->check(CLI::IsMember(mapped(servers(), &Server::name)));
    command
        ->add_option(
            "--sequence", flags->request.sequence,
            "Tokens of a sequence, default all, at most the model's longest context, with a batch 4096; decode: tokens of "
            "each context, default 8192")
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{100'000'000}));
    CLI::Option* draft =
        command
            ->add_option("--draft", flags->request.draft,
                         "Decode, serve: drafted tokens that each sequence has verified in a step "
                         "(speculative decoding), without what drafts them; default 0")
            ->check(CLI::Range(0, 1000));
    command
        ->add_option(
            "--accepted", flags->request.accepted,
            "Tokens that a sequence gains in a step on average, 1 to --draft + 1; default: all, an upper bound")
        ->needs(draft);
    command
        ->add_option(
            "--mixed", flags->request.mixed,
            "Decode: tokens of a prompt that each copy of the model processes in the same step (chunked "
            "prefill), half-way through a prompt as long as the contexts; default 0")
        ->check(CLI::Range(0, 1'000'000));
    const CLI::Range degrees(1, 1'000'000);
    command
        ->add_option(
            "--tp", flags->request.tensor,
            "Degree of tensor parallelism, over neighbouring GPUs; default: GPUs / dp, but 1 with --ep or "
            "--fsdp")
        ->check(degrees);
    command
        ->add_option("--ep", flags->request.experts,
                     "Degree of expert parallelism, over neighbouring GPUs; default 1")
        ->check(degrees);
    command->add_option("--dp", flags->request.data, "Degree of data parallelism; default: GPUs / tp")
        ->check(degrees);
    command
        ->add_option("--pp", flags->request.pipeline.stages,
                     "Stages of a pipeline, blocks of neighbouring GPUs; default 1")
        ->check(degrees);
    command
        ->add_option(
            "--vp", flags->request.pipeline.chunks,
            "Chunks of layers of each stage (virtual stages), with --pipeline interleaved; default 1")
        ->check(degrees);
    command
        ->add_option(
            "--pipeline", flags->pipeline,
            "Order of forward and backward passes: 1f1b, interleaved, zero_bubble, dualpipe; default "
            "interleaved with --vp, else 1f1b")
        ->check(CLI::IsMember(
            std::vector<std::string>(pipeline_order_names.begin(), pipeline_order_names.end())));
    CLI::Option* context =
        command
            ->add_option("--cp", flags->request.context,
                         "GPUs that share each sequence, and its keys and values (--cp-comm-type); default 1")
            ->check(degrees);
    add_choice(
        *command, "--cp-comm-type", context_exchange_names, flags, flags->request.exchange,
        "all_gather: of keys and values before attention; p2p: they go around a ring beside it; a2a: each "
        "GPU has a part of the heads; default all_gather")
        ->needs(context);
    const CLI::Range batches(std::int64_t{1}, std::int64_t{100'000'000});
    command
        ->add_option("--micro-batch", flags->request.micro_batch,
                     "Training: sequences of a micro-batch of each copy of the model; default 1")
        ->check(batches);
    command
        ->add_option(
            "--global-batch", flags->request.global_batch,
            "Training: sequences of an iteration, instead of --tokens; default: one micro-batch a copy")
        ->check(batches);
    add_choice(
        *command, "--recompute", recompute_names, flags, flags->request.recompute,
        "What backward passes compute again instead of keeping it: none, selective (attention), full "
        "(each layer from its input), mla_up_proj (queries, keys and values out of latent vectors); default none");
    command
        ->add_option_function<std::string>(
            "--optimizer-dtype",
            [flags](const std::string& name) {
                flags->request.moments = static_cast<DType>(place_of(dtype_names, name));
            },
            "Training: both moments of the gradients that Adam keeps, fp32 or bf16 (Megatron's --exp-avg-dtype and "
            "--exp-avg-sq-dtype); the weights that it changes are in fp32; default fp32")
        ->check(CLI::IsMember({"fp32", "bf16"}));
    add_choice(
        *command, "--fp8-recipe", fp8_recipe_names, flags, flags->request.recipe,
        "Training in fp8: scales of a tensor by those of earlier steps (delayed), or by its own largest magnitude, for "
        "which a kernel reads it before (tensorwise; NVIDIA's FP8-CS); default delayed");
    command->add_flag(
        "--fsdp", flags->request.sharded,
        "Data-parallel GPUs share weights, gradients and optimiser states (PyTorch fully_shard, ZeRO-3)");
    command
        ->add_option_function<int>(
            "--zero", [flags](const int& stage) { flags->request.zero = static_cast<Zero>(stage); },
            "Data-parallel GPUs share optimiser states (1: Megatron's --use-distributed-optimizer), also "
            "gradients (2); 3 is --fsdp; default 0")
        ->check(CLI::Range(0, 2));
    command
        ->add_option(
            "--imbalance", flags->request.imbalance,
            "Exponent of the power law by which tokens go to experts, such as 1.2; 0: evenly; default: each token's at random")
        ->check(CLI::Range(0.0, 10.0));
    CLI::Option* all_to_all =
        command
            ->add_option(
                "--all-to-all", flags->all_to_all,
                "All-to-alls of experts by the kernels of DeepEP: deepep, deepep_low_latency; default: by schedules, "
                "of which some take the vendor's library")
            ->check(CLI::IsMember({"deepep", "deepep_low_latency"}));
    const CLI::Range sms(2, 1024);
    command
        ->add_option_function<std::string>(
            "--sms",
            [flags](const std::string& given) {
                flags->request.best_sms = given == "best";
                if (given != "best") flags->sms = static_cast<std::int16_t>(std::stoi(given));
            },
            "SMs of --all-to-all deepep, 2 to 1024, or best: of 4, 8, 12 ... 24 those with which the step is "
            "fastest; default 20")
        ->check([sms](const std::string& given) { return given == "best" ? "" : sms(given); })
        ->needs(all_to_all);
    command->add_flag(
        "--enable-two-batch-overlap", flags->request.two_batches,
        "Layers whose experts are sent tokens run as two half batches, each beside the all-to-alls of "
        "the other (the name of SGLang)");
    command->add_flag(
        "--sequence-parallel", flags->request.sequence_parallel,
        "Norms work on shares of the tokens: all-gathers and reduce-scatters instead of all-reduces");
    std::vector<std::string> formats(dtype_names.begin(), dtype_names.end());
    append(formats, weight_format_names());
    command
        ->add_option(
            "--dtype", flags->dtype,
            "Operands of GEMMs, or how weights are stored (fp8_block, nvfp4 ...); default: by the model's "
            "quantization_config, else bf16")
        ->check(CLI::IsMember(formats));
    command
        ->add_option(
            "--kv-cache-dtype", flags->request.caches,
            "Keys and values that decode reads: fp8, bf16; default auto, by the model's quantization_config")
        ->check(CLI::IsMember({"auto", "fp8", "bf16"}));
    command->add_option("--layers", flags->layers, "Number of layers; default: as many as the model has")
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{100'000}));
    command
        ->add_option(
            "--mtp", flags->predicting,
            "Training: layers behind the last one that predict further tokens (multi-token prediction), with "
            "an output projection each; default 0")
        ->check(CLI::Range(std::int64_t{1}, std::int64_t{100}));
    command
        ->add_option(
            "--last-stage-layers", flags->request.pipeline.last_layers,
            "Layers of the last stage of a pipeline (of its last chunk), without those of --mtp "
            "(Megatron's --decoder-last-pipeline-num-layers); default: as many as others, or one less")
        ->check(CLI::Range(std::int64_t{0}, std::int64_t{100'000}));
    command->add_flag("--known-part", flags->known_part,
                      "Read a model without its layers of kinds that are not known, instead of refusing it");
    command
        ->add_option(
            "--kernels", flags->kernels,
            "library: only schedules that run with the kernels of a vendor's GEMM library; any: also those "
            "that need a kernel of one's own, with the result of library beside it; default library")
        ->check(CLI::IsMember({"any", "library"}));
    command->add_flag(
        "--all-candidates", flags->all,
        "Simulate all candidates of sim advise for each pair; default: a selection of each kind");
    command->add_flag(
        "--cool", flags->cool,
        "Cool GPUs. Default: the settled clock of back-to-back steps, where the device's power constants are known");
    command
        ->add_option("--seeds", flags->seeds,
                     "Number of simulations if the machine leaves the order of DMA copies open; default 3")
        ->check(CLI::Range(1, most_seeds));
    add_what_if_flag(*command, flags->what_if);
    command->parse_complete_callback([flags, command] {
        for (const char* name : {"--tokens",
                                 "--phase",
                                 "--sequence",
                                 "--tp",
                                 "--ep",
                                 "--dp",
                                 "--pp",
                                 "--vp",
                                 "--cp",
                                 "--cp-comm-type",
                                 "--zero",
                                 "--all-to-all",
                                 "--sms",
                                 "--enable-two-batch-overlap",
                                 "--pipeline",
                                 "--micro-batch",
                                 "--global-batch",
                                 "--recompute",
                                 "--optimizer-dtype",
                                 "--fp8-recipe",
                                 "--server",
                                 "--fsdp",
                                 "--imbalance",
                                 "--draft",
                                 "--accepted",
                                 "--mixed",
                                 "--sequence-parallel",
                                 "--dtype",
                                 "--layers",
                                 "--mtp",
                                 "--last-stage-layers",
                                 "--known-part",
                                 "--isl",
                                 "--osl",
                                 "--concurrency",
                                 "--kv-cache-dtype"})
            if (command->count(name) > 0) flags->given.emplace_back(name);
    });
    return flags;
}

}  // namespace overlap
