"""codemod.py tests|real FILE...: rewrite calls of the 0.2 API."""
import ast, sys, re
ROWS = {"classes", "sample_weight", "groups", "ids", "prevalence", "training"}
PLAN = {"threshold", "noise", "confidence", "prior_error", "reveals", "choices", "delta", "spread", "board", "gates"}
EVERY = ["queries", "tolerance", "charges", "estimate"]
METHODS = {"evaluate_predictions": "evaluate", "evaluate_many": "evaluate", "compare_predictions": "compare",
           "reveal_predictions": "reveal", "choose_predictions": "choose", "final_predictions": "final"}
KW = {"noise_scale": "noise"}

def kwtext(src, k):
    return f"{k.arg}={ast.get_source_segment(src, k.value)}" if k.arg else f"**{ast.get_source_segment(src, k.value)}"

def convert(src, k):
    """-> list of (name, text)"""
    v = ast.get_source_segment(src, k.value)
    n = KW.get(k.arg, k.arg)
    if n == "policy":
        if isinstance(k.value, ast.Constant):
            return {"gate": [("gates", "True")], "claims": [("board", '"claims"')], "thresholdout": []}.get(k.value.value, [("policy", v)])
        return [("policy", v)]
    if n == "witness" and v == "False": return [("!allow", '"no witness"')]
    if n == "vacuous":
        return [("!allow", '"vacuous"')] if v == "True" else [] if v == "False" else [("vacuous", v)]
    if n == "another_budget":
        return [("!allow", '"second budget"')] if v == "True" else [("another_budget", v)]
    if n == "overlap":
        return [("!allow", '"overlap"')] if v == '"allow"' else [] if v == '"refuse"' else [("overlap", v)]
    return [(n, v)]
FLAT = {'"no witness"': ("unwitnessed", "True"), '"vacuous"': ("vacuous", "True"), '"second budget"': ("another_budget", "True"), '"overlap"': ("overlapping", "True")}

def offsets(src):
    out = [0]
    for line in src.split("\n"): out.append(out[-1] + len(line.encode()) + 1)
    return out

def rewrite(src, mode):
    changed = True; need = set(); rounds = 0
    while changed and rounds < 400:
        changed = False; rounds += 1
        try: tree = ast.parse(src)
        except SyntaxError: return src, need
        data = src.encode(); off = offsets(src)
        pos = lambda l, c: off[l - 1] + c
        def seg(n): return data[pos(n.lineno, n.col_offset):pos(n.end_lineno, n.end_col_offset)].decode()
        calls = sorted((n for n in ast.walk(tree) if isinstance(n, ast.Call)), key=lambda n: -pos(n.lineno, n.col_offset))
        for c in calls:
            f = c.func; new = None
            start, end = pos(c.lineno, c.col_offset), pos(c.end_lineno, c.end_col_offset)
            args = [seg(a) for a in c.args]
            if isinstance(f, ast.Attribute) and f.attr in METHODS:
                kws = []
                for k in c.keywords:
                    n = {"priors": "prior", "tolerances": "tolerance", "names": "name", "predictions": "subject", "incumbent": "old"}.get(k.arg, k.arg)
                    if f.attr == "choose_predictions" and k.arg in {"priors"}: n = "priors"
                    if f.attr == "choose_predictions" and k.arg == "predictions": n = "subjects"
                    if f.attr == "compare_predictions" and k.arg == "predictions": n = "new"
                    kws.append(f"{n}={seg(k.value)}" if n else f"**{seg(k.value)}")
                if f.attr in {"evaluate_many", "choose_predictions"} and args and not isinstance(c.args[0], (ast.List, ast.ListComp, ast.Tuple)) and not (isinstance(c.args[0], ast.Call) and isinstance(c.args[0].func, ast.Name) and c.args[0].func.id in {"list","tuple"}) and not args[0].startswith("*"):
                    args[0] = f"list({args[0]})"
                if f.attr == "evaluate_many" and len(args) > 1: args[1] = f"prior={args[1]}"
                new = f"{seg(f.value)}.{METHODS[f.attr]}({', '.join(args + kws)})"
            elif isinstance(f, ast.Attribute) and f.attr == "measure" and any(k.arg == "kind" for k in c.keywords):
                new = f"{seg(f)}({', '.join(args + [kwtext2(seg,k,{'kind':'way'}) for k in c.keywords])})"
            elif isinstance(f, ast.Attribute) and f.attr in {"on", "rotate"} and any(k.arg in {"vacuous", "another_budget", "overlap"} | ROWS for k in c.keywords) and not (f.attr == "on" and not any(k.arg == "vacuous" for k in c.keywords)):
                allow, kws, rows = [], [], []
                for k in c.keywords:
                    if k.arg is None: kws.append(("**", seg(k.value))); continue
                    for n, v in conv(seg, k):
                        if n == "!allow": allow.append(v)
                        elif f.attr == "rotate" and n in ROWS: rows.append(f"{n}={v}")
                        else: kws.append((n, v))
                if rows: args = [f"Rows({', '.join(args + rows)})"]; need.add("Rows")
                if allow: kws.append(("allow", "{" + ", ".join(allow) + "}"))
                bad = [n for n, _ in kws if n in {"vacuous", "another_budget", "overlap"}]
                if not bad: new = f"{seg(f)}({', '.join(args + [f'{n}={v}' if n != '**' else '**' + v for n, v in kws])})"
            elif isinstance(f, ast.Attribute) and f.attr == "open" and seg(f.value) == "ReusableHoldout" and any(k.arg in ROWS for k in c.keywords):
                rows = [f"{k.arg}={seg(k.value)}" for k in c.keywords if k.arg in ROWS]
                rest = [kwtext2(seg, k, {}) for k in c.keywords if k.arg not in ROWS]
                new = f"{seg(f)}({', '.join([args[0], 'Rows(' + ', '.join(args[1:] + rows) + ')', *rest])})"; need.add("Rows")
            elif isinstance(f, ast.Name) and f.id == "Plan" and any(k.arg in {"policy", "noise_scale", "mechanism"} for k in c.keywords):
                kws = []
                for k in c.keywords:
                    if k.arg is None: kws.append("**" + seg(k.value)); continue
                    if k.arg == "mechanism":
                        if seg(k.value) == '"noiseless"': kws.append("noise=0.0")
                        continue
                    kws += [f"{n}={v}" for n, v in conv(seg, k)]
                new = f"Plan({', '.join(args + kws)})"
                if "policy=" in new: new = None
            elif isinstance(f, ast.Name) and f.id == "ReusableHoldout":
                kws, allow = [], []
                for k in c.keywords:
                    if k.arg is None: kws.append(("**", seg(k.value))); continue
                    for n, v in conv(seg, k):
                        if n == "!allow": allow.append(v)
                        else: kws.append((n, v))
                if mode == "tests":
                    kws += [FLAT[a] for a in allow]
                    new = f"made_guard({', '.join(args + [f'{n}={v}' if n != '**' else '**' + v for n, v in kws])})"; need.add("made_guard")
                else:
                    rows = [f"{n}={v}" for n, v in kws if n in ROWS]
                    plan = [(n, v) for n, v in kws if n in PLAN]
                    rest = [(n, v) for n, v in kws if n not in ROWS | PLAN]
                    if plan:
                        plan += [(n, v) for n, v in rest if n in EVERY]; rest = [(n, v) for n, v in rest if n not in EVERY]
                        rest.append(("plan", "Plan(" + ", ".join(f"{n}={v}" for n, v in plan) + ")")); need.add("Plan")
                    if rows:
                        args = [f"Rows({', '.join(args + rows)})"]; need.add("Rows")
                    if allow: rest.append(("allow", "{" + ", ".join(allow) + "}"))
                    new = f"ReusableHoldout({', '.join(args + [f'{n}={v}' if n != '**' else '**' + v for n, v in rest])})"
            if new is not None and new != data[start:end].decode():
                src = (data[:start] + new.encode() + data[end:]).decode(); changed = True
                break
    src = re.sub(r'(answer|answer_|answers\[\d\]|first|second|final|told|found|one|asked)\.kind\b', r'\1.way', src)
    src = re.sub(r'(history|history\(\)|row|rows|last)\["kind"\]', r'\1["way"]', src)
    src = re.sub(r'\.noise_scale\b', '.noise', src)
    return src, need

def kwtext2(seg, k, m):
    return f"{m.get(k.arg, k.arg)}={seg(k.value)}" if k.arg else f"**{seg(k.value)}"
class _K: pass
def conv(seg, k):
    o = _K(); o.arg = k.arg; o.value = k.value
    v = seg(k.value); n = KW.get(k.arg, k.arg)
    if n == "policy":
        if isinstance(k.value, ast.Constant):
            return {"gate": [("gates", "True")], "claims": [("board", '"claims"')], "thresholdout": []}.get(k.value.value, [("policy", v)])
        return [("policy", v)]
    if n == "witness" and v == "False": return [("!allow", '"no witness"')]
    if n == "vacuous": return [("!allow", '"vacuous"')] if v == "True" else [] if v == "False" else [("vacuous", v)]
    if n == "another_budget": return [("!allow", '"second budget"')] if v == "True" else [("another_budget", v)]
    if n == "overlap": return [("!allow", '"overlap"')] if v == '"allow"' else [] if v == '"refuse"' else [("overlap", v)]
    return [(n, v)]

def fix_imports(src, need, mode):
    if "made_guard" in need and "import made_guard" not in src:
        m = re.search(r'^(from|import) ', src, re.M)
        at = m.start() if m else 0
        fut = re.search(r'^from __future__[^\n]*\n\n?', src, re.M)
        if fut: at = fut.end()
        src = src[:at] + "from made_guards import made_guard\n" + src[at:]
    for n in ("Rows", "Plan"):
        if n in need and not re.search(rf'^from reusable_holdout import [^\n]*\b{n}\b', src, re.M) and not re.search(rf'from reusable_holdout import \([^)]*\b{n}\b', src):
            m = re.search(r'^from reusable_holdout import ([^\n(]+)$', src, re.M)
            if m: src = src[:m.start(1)] + ", ".join(sorted(set(x.strip() for x in m[1].split(",")) | {n}, key=str)) + src[m.end(1):]
            else:
                m = re.search(r'^from reusable_holdout', src, re.M) or re.search(r'^(from|import) ', src, re.M)
                if m: src = src[:m.start()] + f"from reusable_holdout import {n}\n" + src[m.start():]
    return src

if __name__ == "__main__":
    mode = sys.argv[1]
    for path in sys.argv[2:]:
        old = open(path).read()
        if path.endswith(".md"):
            def block(m):
                new, need = rewrite(m[2], mode)
                return m[1] + fix_imports(new, need, mode) + m[3]
            new = re.sub(r'(```python\n)(.*?)(```)', block, old, flags=re.S)
        else:
            new, need = rewrite(old, mode)
            new = fix_imports(new, need, mode)
        if new != old: open(path, "w").write(new); print("changed", path)
