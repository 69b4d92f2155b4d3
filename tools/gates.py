import ast,sys
sys.path.insert(0,'tools')
from codemod import offsets
for path in sys.argv[1:]:
    src=open(path).read(); done=False
    while not done:
        done=True
        tree=ast.parse(src); data=src.encode(); off=offsets(src); pos=lambda l,c: off[l-1]+c
        seg=lambda n: data[pos(n.lineno,n.col_offset):pos(n.end_lineno,n.end_col_offset)].decode()
        for c in sorted((n for n in ast.walk(tree) if isinstance(n,ast.Call)),key=lambda n:-pos(n.lineno,n.col_offset)):
            f=c.func
            if isinstance(f,ast.Attribute) and f.attr in ("evaluate","compare") and seg(f.value) not in ("free","plain","metric"):
                args=[seg(a) for a in c.args]; kws=[(k.arg,seg(k.value)) for k in c.keywords]
                prior=[v for n,v in kws if n=="prior"]
                rest=[(n,v) for n,v in kws if n!="prior"]
                if f.attr=="compare": args=[f"Difference({args[0]}, {args[1]})",*args[2:]]
                new=f"{seg(f.value)}.gate({', '.join(args+[f'at_least={p}' for p in prior]+[f'{n}={v}' if n else f'**{v}' for n,v in rest])})"
                s,e=pos(c.lineno,c.col_offset),pos(c.end_lineno,c.end_col_offset)
                src=(data[:s]+new.encode()+data[e:]).decode(); done=False; break
    open(path,'w').write(src)
