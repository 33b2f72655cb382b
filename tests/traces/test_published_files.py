"""The first lines of every format as its authors publish it, read as a user reads them; what is cut is said."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import optsched as osd
from optsched.errors import InputError, OptschedError
from traces.orlib_excerpt import WT40

GAVEL_6 = (
    "ResNet-18\tcd /home/user/gpusched/workloads/pytorch/image_classification/cifar10 && python3 main.py "
    "--data_dir=/home/user/data/cifar10\t--num_steps\t101792\t10\t1\n"
)  # stanford-futuredata/gavel, scheduler/debug.trace
GAVEL_7 = (
    "Recommendation (batch size 8192)\tcd %s/gpusched/workloads/pytorch/recommendation/scripts/ml-20m && python3 train.py "
    "--data_dir %s/data/ml-20m/pro_sg/ --batch_size 8192\t-n\t1\t1079657\t219316.000000\t4\n"
)  # the same, scheduler/traces/msr/seed=0/103959.trace, its second line
GAVEL_10 = (
    "ResNet-18 (batch size 128)\tpython3 main.py --data_dir=%s/cifar10 --batch_size 128\timage_classification/cifar10\t"
    "--num_steps\t1\t925982\t4\t1\t-1.000000\t0\n"
)  # the same, scheduler/traces/physical_cluster/max_min_fairness.trace
SHOCKWAVE_12 = (
    "ResNet-18 (batch size 32)\tpython3 main.py --data_dir=%s/cifar10 --batch_size 32\timage_classification/cifar10\t"
    "--num_steps\t1\t143450\t1\taccordion\t1\t-1.000000\t3338\t55\n"
)  # uw-mad-dash/shockwave, scheduler/traces/reproduce/120_..._multigpu_dynamic.trace, its second line
TIRESIAS = (
    "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\r\n"
    "0,1,0,606,vgg19,164,30\r\n1,8,30,133,vgg11,147,23\r\n"
)  # SymbioticLab/Tiresias, simulator/60_job.csv
MURI = (
    "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time,resource_time_0,"
    "resource_time_1,resource_time_2,priority\r\n"
    "0,8,0,10956,gpt2,4,5095000,91000,437,0.6,419,49,0\r\n1,8,1534000,1463,vgg16,16,281000,28000,214,82,75,66,1\r\n"
)  # Rivendile/Muri, cluster_exp/trace-data/cluster_trace.csv
PHILLY = (
    "timestamp,duration,num_gpus,gpu_time,cluster\n"
    "2017-10-09 07:01:55,66.0,1,66.0,11cb48\n2017-10-09 06:13:03,2951.0,1,2951.0,6214e9\n"
)  # petuum/adaptdl, osdi21-artifact, simulator/traces/philly.csv
POLLUX = """\
name,time,application,num_replicas,batch_size
bert-0,259,bert,6,384
cifar10-1,289,cifar10,6,2048
"""  # the same, simulator/workloads/workload-4.csv
PLACEMENTS = """\
placement,local_bsz,step_time,sync_time
1,4,0.45532354712486267,0.013738612174987792
1,6,0.5693899691104889,0.013729131996631623
1,8,0.7032617032527924,0.013705408036708831
"""  # the same, simulator/traces/bert/placements.csv
SCALABILITY = """\
num_nodes,num_replicas,local_bsz,step_time,sync_time
6,6,4,1.4923269003629684,1.0928203125
6,6,6,1.526017963886261,1.0126073074340822
"""  # the same, scalability.csv beside it
PHILLY_LOG = [
    {
        "status": "Pass",
        "vc": "ee9e8c",
        "jobid": "application_1506638472019_14199",
        "attempts": [
            {
                "start_time": "2017-10-07 01:12:09",
                "end_time": "2017-10-07 01:13:23",
                "detail": [{"ip": "m47", "gpus": ["gpu0", "gpu1"]}],
            }
        ],
        "submitted_time": "2017-10-07 01:11:39",
        "user": "ce2f4c",
    }
]  # msr-fiddle/philly-traces, the example entry of its README, two of eight GPUs
WTOPT40 = [913, 1225, 537, 2094, 990, 6955, 6324, 6865, 16225, 9737, 17465, 19312, 29256, 14377, 26914, 72317, 78623]
WTOPT40 += [74310, 77122]  # OR-Library, wtopt40.txt, one a line; number 19 is the best value known

FIRST_JOBS = [  # dialect, name of the file, text, (id, gpus, arrival, duration, iterations, model) of the first jobs
    ("gavel", "debug.trace", GAVEL_6, [("1", 1, 10.0, None, 101792.0, "ResNet-18")]),
    ("gavel", "103959.trace", GAVEL_7, [("1", 4, 219316.0, None, 1079657.0, "Recommendation")]),
    ("gavel", "max_min_fairness.trace", GAVEL_10, [("1", 4, 0.0, None, 925982.0, "ResNet-18")]),
    ("gavel", "120_0.2_5_100_40_25_0,0.5,0.5.trace", SHOCKWAVE_12, [("1", 1, 55.0, 3338.0, 143450.0, "ResNet-18")]),
    ("tiresias", "60_job.csv", TIRESIAS, [("0", 1, 0.0, 164.0, 606.0, "vgg19"), ("1", 8, 30.0, 147.0, 133.0, "vgg11")]),
    ("muri", "cluster.csv", MURI, [("0", 8, 0, 5095.0, 10956.0, "gpt2"), ("1", 8, 1534.0, 281.0, 1463.0, "vgg16")]),
    ("philly", "philly.csv", PHILLY, [("2", 1, 2932.0, 66.0, None, None), ("3", 1, 0.0, 2951.0, None, None)]),
]


@pytest.mark.parametrize("change", [str, lambda text: text.replace("\r\n", "\n").replace("\n", "\r\n"), str.rstrip])
@pytest.mark.parametrize(("dialect", "name", "text", "expected"), FIRST_JOBS, ids=[name for _, name, *_ in FIRST_JOBS])
def test_first_jobs_of_a_published_trace(written: Any, dialect: str, name: str, text: str, expected, change) -> None:
    """As published, with the line ends of another system, and without the last one."""
    found = osd.load(f"{dialect}:{written(change(text), name)}", cluster="2x4:X", say=lambda _: None)
    columns = ("id", "gpus", "arrival", "duration", "iterations", "model")
    assert found.table.select(columns).rows() == expected


def test_commands_name_nobody() -> None:
    """The published ones begin with people's home folders; a command is data that no reader looks at."""
    texts = (GAVEL_6, GAVEL_7, GAVEL_10, SHOCKWAVE_12)
    assert {name for text in texts for name in re.findall(r"/(?:home|users)/([^/ ]+)", text, re.IGNORECASE)} == {"user"}


def test_gavel_s_columns_are_not_taken_for_others(written: Any) -> None:
    """Seven columns with the weight where ``needs_data_dir`` belongs are no legacy trace."""
    path = written(GAVEL_7.replace("\t-n\t1\t", "\t-n\t2.5\t"))
    with pytest.raises(OptschedError, match=r"needs_data_dir = '?2\.5.*0 or 1"):
        osd.load(f"gavel:{path}", cluster="2x4")


def test_a_pollux_workload_and_its_measurements_as_published(tmp_path: Path, written: Any) -> None:
    """The artifact has no ``iterations.csv``; its measurements lie one folder an application."""
    workload = written(POLLUX, "workloads/workload-4.csv")
    with pytest.raises(
        InputError, match=r"how long its jobs are.*application,batch_size,iterations.*artifact has none"
    ):
        osd.load(f"pollux:{workload}", cluster="6x4")
    iterations = "application,batch_size,iterations\ncifar10,2048,2700\nbert,384,600\n"
    written(iterations, "workloads/iterations.csv")
    written(PLACEMENTS, "traces/bert/placements.csv")
    written(SCALABILITY, "traces/bert/scalability.csv")
    written(PHILLY, "traces/philly.csv")  # lies there, too
    found = osd.load(f"pollux:{workload}", cluster="6x4", profiles=tmp_path / "traces")
    assert found.ids == ("bert-0", "cifar10-1")
    assert found.arrival.tolist() == [259.0, 289.0]
    assert found.gpus.tolist() == [6, 6]
    assert list(found.scalings) == ["bert"]
    measured = found.scalings["bert"].measured
    assert measured.placements[0] == (1, 4.0, 0.45532354712486267, 0.013738612174987792)
    assert measured.scalability[1] == (6, 6, 6.0, 1.526017963886261, 1.0126073074340822)


def test_gavel_s_throughputs_as_published(written: Any) -> None:
    """scheduler/simulation_throughputs.json: its first rates, of two job types only."""
    a, b = "('ResNet-18 (batch size 16)', 1)", "('ResNet-18 (batch size 32)', 1)"
    rows = {a: {"null": 4.795294551566172, b: [2.539979567443098, 3.1201925448827033]}, b: {"null": 7.175820532538584}}
    table = osd.read_throughputs(written(json.dumps({"k80": rows, "k80_unconsolidated": rows}, indent=4), "t.json"))
    assert table.get("ResNet-18 (batch size 16)", "k80", 1).together == 4.795294551566172
    assert table.get("ResNet-18 (batch size 32)", "k80", 1).together == 7.175820532538584


def test_or_library_s_own_file_of_optima(written: Any) -> None:
    """``wtopt40.txt`` was passed over; number 19 of it is not proven, and a cut of ``wt40.txt`` has other instances."""
    path = written(WT40 * len(WTOPT40), "wt40.txt")
    written("".join(f"{value}\n" for value in WTOPT40), "wtopt40.txt")
    first = osd.load(f"orlib-wt:{path}#1")
    assert first.n == 40
    assert first.duration[:3].tolist() == [26.0, 24.0, 79.0]
    assert first.weight[:3].tolist() == [1.0, 10.0, 9.0]
    assert first.optimum["value"] == 913
    assert osd.load(f"orlib-wt:{path}#19").optimum is None
    assert osd.load(f"orlib-wt:{written(WT40, 'wt40_cut.txt')}#1").optimum is None


def test_microsoft_s_own_log(written: Any) -> None:
    path = written(json.dumps(PHILLY_LOG, indent=4), "cluster_job_log")
    job = osd.load(f"philly:{path}").job(0)
    assert (job.id, job.arrival, job.gpus, job.duration) == ("application_1506638472019_14199", 0, 2, 74)
    assert job.ran == ((30, 104),)
    with pytest.raises(InputError, match="this is JSON, not a table"):
        osd.load(f"csv:{path}", cluster="8x8")


@pytest.mark.parametrize(
    "text",
    [
        "job_id,num_gpu,submit_time,start_time,duration,model_size,aggr_interval,model_name,model_scale\n"
        "10,12,11,14,20,400,0,vgg19,1\n",  # tf_job.csv
        "duration\r\n121\r\n122\r\n",  # yarn-gput1000.csv
        "num_switch,num_node_p_switch,num_gpu_p_node,num_cpu_p_node,mem_p_node\n1,16,4,128,254",  # cluster_spec.csv
    ],
)
def test_tiresias_other_files_are_no_traces(written: Any, text: str) -> None:
    with pytest.raises(InputError, match="wrong dialect"):
        osd.load(f"tiresias:{written(text, 'x.csv')}", cluster="8x8")
